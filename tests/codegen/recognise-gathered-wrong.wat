;; Tables of words that are no product of the box are left alone.
;; on leon2 +sbox +mixcol4: mixcol4 0, sbox 0
(module (memory 2)
  (data $.rodata (i32.const 65536)
    "\c6\63\63\25\f8\7c\7c\84\ee\77\77\99\f6\7b\7b\8d\ff\f2\f2\0d\d6\6b\6b\bd\de\6f\6f\b1\91\c5\c5\54"
    "\60\30\30\50\02\01\01\03\ce\67\67\a9\56\2b\2b\7d\e7\fe\fe\19\b5\d7\d7\62\4d\ab\ab\e6\ec\76\76\9a"
    "\8f\ca\ca\45\1f\82\82\9d\89\c9\c9\40\fa\7d\7d\87\ef\fa\fa\15\b2\59\59\eb\8e\47\47\c9\fb\f0\f0\0b"
    "\41\ad\ad\ec\b3\d4\d4\67\5f\a2\a2\fd\45\af\af\ea\23\9c\9c\bf\53\a4\a4\f7\e4\72\72\96\9b\c0\c0\5b"
    "\75\b7\b7\c2\e1\fd\fd\1c\3d\93\93\ae\4c\26\26\6a\6c\36\36\5a\7e\3f\3f\41\f5\f7\f7\02\83\cc\cc\4f"
    "\68\34\34\5c\51\a5\a5\f4\d1\e5\e5\34\f9\f1\f1\08\e2\71\71\93\ab\d8\d8\73\62\31\31\53\2a\15\15\3f"
    "\08\04\04\0c\95\c7\c7\52\46\23\23\65\9d\c3\c3\5e\30\18\18\28\37\96\96\a1\0a\05\05\0f\2f\9a\9a\b5"
    "\0e\07\07\09\24\12\12\36\1b\80\80\9b\df\e2\e2\3d\cd\eb\eb\26\4e\27\27\69\7f\b2\b2\cd\ea\75\75\9f"
    "\12\09\09\1b\1d\83\83\9e\58\2c\2c\74\34\1a\1a\2e\36\1b\1b\2d\dc\6e\6e\b2\b4\5a\5a\ee\5b\a0\a0\fb"
    "\a4\52\52\f6\76\3b\3b\4d\b7\d6\d6\61\7d\b3\b3\ce\52\29\29\7b\dd\e3\e3\3e\5e\2f\2f\71\13\84\84\97"
    "\a6\53\53\f5\b9\d1\d1\68\00\00\00\00\c1\ed\ed\2c\40\20\20\60\e3\fc\fc\1f\79\b1\b1\c8\b6\5b\5b\ed"
    "\d4\6a\6a\be\8d\cb\cb\46\67\be\be\d9\72\39\39\4b\94\4a\4a\de\98\4c\4c\d4\b0\58\58\e8\85\cf\cf\4a"
    "\bb\d0\d0\6b\c5\ef\ef\2a\4f\aa\aa\e5\ed\fb\fb\16\86\43\43\c5\9a\4d\4d\d7\66\33\33\55\11\85\85\94"
    "\8a\45\45\cf\e9\f9\f9\10\04\02\02\06\fe\7f\7f\81\a0\50\50\f0\78\3c\3c\44\25\9f\9f\ba\4b\a8\a8\e3"
    "\a2\51\51\f3\5d\a3\a3\fe\80\40\40\c0\05\8f\8f\8a\3f\92\92\ad\21\9d\9d\bc\70\38\38\48\f1\f5\f5\04"
    "\63\bc\bc\df\77\b6\b6\c1\af\da\da\75\42\21\21\63\20\10\10\30\e5\ff\ff\1a\fd\f3\f3\0e\bf\d2\d2\6d"
    "\81\cd\cd\4c\18\0c\0c\14\26\13\13\35\c3\ec\ec\2f\be\5f\5f\e1\35\97\97\a2\88\44\44\cc\2e\17\17\39"
    "\93\c4\c4\57\55\a7\a7\f2\fc\7e\7e\82\7a\3d\3d\47\c8\64\64\ac\ba\5d\5d\e7\32\19\19\2b\e6\73\73\95"
    "\c0\60\60\a0\19\81\81\98\9e\4f\4f\d1\a3\dc\dc\7f\44\22\22\66\54\2a\2a\7e\3b\90\90\ab\0b\88\88\83"
    "\8c\46\46\ca\c7\ee\ee\29\6b\b8\b8\d3\28\14\14\3c\a7\de\de\79\bc\5e\5e\e2\16\0b\0b\1d\ad\db\db\76"
    "\db\e0\e0\3b\64\32\32\56\74\3a\3a\4e\14\0a\0a\1e\92\49\49\db\0c\06\06\0a\48\24\24\6c\b8\5c\5c\e4"
    "\9f\c2\c2\5d\bd\d3\d3\6e\43\ac\ac\ef\c4\62\62\a6\39\91\91\a8\31\95\95\a4\d3\e4\e4\37\f2\79\79\8b"
    "\d5\e7\e7\32\8b\c8\c8\43\6e\37\37\59\da\6d\6d\b7\01\8d\8d\8c\b1\d5\d5\64\9c\4e\4e\d2\49\a9\a9\e0"
    "\d8\6c\6c\b4\ac\56\56\fa\f3\f4\f4\07\cf\ea\ea\25\ca\65\65\af\f4\7a\7a\8e\47\ae\ae\e9\10\08\08\18"
    "\6f\ba\ba\d5\f0\78\78\88\4a\25\25\6f\5c\2e\2e\72\38\1c\1c\24\57\a6\a6\f1\73\b4\b4\c7\97\c6\c6\51"
    "\cb\e8\e8\23\a1\dd\dd\7c\e8\74\74\9c\3e\1f\1f\21\96\4b\4b\dd\61\bd\bd\dc\0d\8b\8b\86\0f\8a\8a\85"
    "\e0\70\70\90\7c\3e\3e\42\71\b5\b5\c4\cc\66\66\aa\90\48\48\d8\06\03\03\05\f7\f6\f6\01\1c\0e\0e\12"
    "\c2\61\61\a3\6a\35\35\5f\ae\57\57\f9\69\b9\b9\d0\17\86\86\91\99\c1\c1\58\3a\1d\1d\27\27\9e\9e\b9"
    "\d9\e1\e1\38\eb\f8\f8\13\2b\98\98\b3\22\11\11\33\d2\69\69\bb\a9\d9\d9\70\07\8e\8e\89\33\94\94\a7"
    "\2d\9b\9b\b6\3c\1e\1e\22\15\87\87\92\c9\e9\e9\20\87\ce\ce\49\aa\55\55\ff\50\28\28\78\a5\df\df\7a"
    "\03\8c\8c\8f\59\a1\a1\f8\09\89\89\80\1a\0d\0d\17\65\bf\bf\da\d7\e6\e6\31\84\42\42\c6\d0\68\68\b8"
    "\82\41\41\c3\29\99\99\b0\5a\2d\2d\77\1e\0f\0f\11\7b\b0\b0\cb\a8\54\54\fc\6d\bb\bb\d6\2c\16\16\3a")
  (func (export "f") (param i32 i32 i32 i32 i32) (result i32) (local i32 i32 i32 i32)
    (i32.xor
      (i32.xor
        (i32.xor
          (i32.xor
            (local.get 4)
            (i32.rotl
              (i32.load offset=65536
                (i32.shl
                  (i32.and (i32.shr_u (local.get 0) (i32.const 0)) (i32.const 255))
                  (i32.const 2)))
              (i32.const 0)))
          (i32.rotl
            (i32.load offset=65536
              (i32.shl (i32.and (i32.shr_u (local.get 1) (i32.const 8)) (i32.const 255)) (i32.const 2)))
            (i32.const 8)))
        (i32.rotl
          (i32.load offset=65536
            (i32.shl (i32.and (i32.shr_u (local.get 2) (i32.const 16)) (i32.const 255)) (i32.const 2)))
          (i32.const 16)))
      (i32.rotl
        (i32.load offset=65536
          (i32.shl (i32.and (i32.shr_u (local.get 3) (i32.const 24)) (i32.const 255)) (i32.const 2)))
        (i32.const 24)))))
