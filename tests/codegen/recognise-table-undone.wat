;; An inverse round table behind the S-box that it undoes is InvMixColumns: keys for decryption.
;; on leon2 +mixcol4: mixcol4_inverse 1, ld_reg 0, ldub_reg 0
;; on leon2 +sbox: sbox 4, sbox_inverse 0
;; f(0) = 0
(module (memory 2)
  (data $.rodata (i32.const 65536)
    "\63\7c\77\7b\f2\6b\6f\c5\30\01\67\2b\fe\d7\ab\76\ca\82\c9\7d\fa\59\47\f0\ad\d4\a2\af\9c\a4\72\c0"
    "\b7\fd\93\26\36\3f\f7\cc\34\a5\e5\f1\71\d8\31\15\04\c7\23\c3\18\96\05\9a\07\12\80\e2\eb\27\b2\75"
    "\09\83\2c\1a\1b\6e\5a\a0\52\3b\d6\b3\29\e3\2f\84\53\d1\00\ed\20\fc\b1\5b\6a\cb\be\39\4a\4c\58\cf"
    "\d0\ef\aa\fb\43\4d\33\85\45\f9\02\7f\50\3c\9f\a8\51\a3\40\8f\92\9d\38\f5\bc\b6\da\21\10\ff\f3\d2"
    "\cd\0c\13\ec\5f\97\44\17\c4\a7\7e\3d\64\5d\19\73\60\81\4f\dc\22\2a\90\88\46\ee\b8\14\de\5e\0b\db"
    "\e0\32\3a\0a\49\06\24\5c\c2\d3\ac\62\91\95\e4\79\e7\c8\37\6d\8d\d5\4e\a9\6c\56\f4\ea\65\7a\ae\08"
    "\ba\78\25\2e\1c\a6\b4\c6\e8\dd\74\1f\4b\bd\8b\8a\70\3e\b5\66\48\03\f6\0e\61\35\57\b9\86\c1\1d\9e"
    "\e1\f8\98\11\69\d9\8e\94\9b\1e\87\e9\ce\55\28\df\8c\a1\89\0d\bf\e6\42\68\41\99\2d\0f\b0\54\bb\16"
    "\51\f4\a7\50\7e\41\65\53\1a\17\a4\c3\3a\27\5e\96\3b\ab\6b\cb\1f\9d\45\f1\ac\fa\58\ab\4b\e3\03\93"
    "\20\30\fa\55\ad\76\6d\f6\88\cc\76\91\f5\02\4c\25\4f\e5\d7\fc\c5\2a\cb\d7\26\35\44\80\b5\62\a3\8f"
    "\de\b1\5a\49\25\ba\1b\67\45\ea\0e\98\5d\fe\c0\e1\c3\2f\75\02\81\4c\f0\12\8d\46\97\a3\6b\d3\f9\c6"
    "\03\8f\5f\e7\15\92\9c\95\bf\6d\7a\eb\95\52\59\da\d4\be\83\2d\58\74\21\d3\49\e0\69\29\8e\c9\c8\44"
    "\75\c2\89\6a\f4\8e\79\78\99\58\3e\6b\27\b9\71\dd\be\e1\4f\b6\f0\88\ad\17\c9\20\ac\66\7d\ce\3a\b4"
    "\63\df\4a\18\e5\1a\31\82\97\51\33\60\62\53\7f\45\b1\64\77\e0\bb\6b\ae\84\fe\81\a0\1c\f9\08\2b\94"
    "\70\48\68\58\8f\45\fd\19\94\de\6c\87\52\7b\f8\b7\ab\73\d3\23\72\4b\02\e2\e3\1f\8f\57\66\55\ab\2a"
    "\b2\eb\28\07\2f\b5\c2\03\86\c5\7b\9a\d3\37\08\a5\30\28\87\f2\23\bf\a5\b2\02\03\6a\ba\ed\16\82\5c"
    "\8a\cf\1c\2b\a7\79\b4\92\f3\07\f2\f0\4e\69\e2\a1\65\da\f4\cd\06\05\be\d5\d1\34\62\1f\c4\a6\fe\8a"
    "\34\2e\53\9d\a2\f3\55\a0\05\8a\e1\32\a4\f6\eb\75\0b\83\ec\39\40\60\ef\aa\5e\71\9f\06\bd\6e\10\51"
    "\3e\21\8a\f9\96\dd\06\3d\dd\3e\05\ae\4d\e6\bd\46\91\54\8d\b5\71\c4\5d\05\04\06\d4\6f\60\50\15\ff"
    "\19\98\fb\24\d6\bd\e9\97\89\40\43\cc\67\d9\9e\77\b0\e8\42\bd\07\89\8b\88\e7\19\5b\38\79\c8\ee\db"
    "\a1\7c\0a\47\7c\42\0f\e9\f8\84\1e\c9\00\00\00\00\09\80\86\83\32\2b\ed\48\1e\11\70\ac\6c\5a\72\4e"
    "\fd\0e\ff\fb\0f\85\38\56\3d\ae\d5\1e\36\2d\39\27\0a\0f\d9\64\68\5c\a6\21\9b\5b\54\d1\24\36\2e\3a"
    "\0c\0a\67\b1\93\57\e7\0f\b4\ee\96\d2\1b\9b\91\9e\80\c0\c5\4f\61\dc\20\a2\5a\77\4b\69\1c\12\1a\16"
    "\e2\93\ba\0a\c0\a0\2a\e5\3c\22\e0\43\12\1b\17\1d\0e\09\0d\0b\f2\8b\c7\ad\2d\b6\a8\b9\14\1e\a9\c8"
    "\57\f1\19\85\af\75\07\4c\ee\99\dd\bb\a3\7f\60\fd\f7\01\26\9f\5c\72\f5\bc\44\66\3b\c5\5b\fb\7e\34"
    "\8b\43\29\76\cb\23\c6\dc\b6\ed\fc\68\b8\e4\f1\63\d7\31\dc\ca\42\63\85\10\13\97\22\40\84\c6\11\20"
    "\85\4a\24\7d\d2\bb\3d\f8\ae\f9\32\11\c7\29\a1\6d\1d\9e\2f\4b\dc\b2\30\f3\0d\86\52\ec\77\c1\e3\d0"
    "\2b\b3\16\6c\a9\70\b9\99\11\94\48\fa\47\e9\64\22\a8\fc\8c\c4\a0\f0\3f\1a\56\7d\2c\d8\22\33\90\ef"
    "\87\49\4e\c7\d9\38\d1\c1\8c\ca\a2\fe\98\d4\0b\36\a6\f5\81\cf\a5\7a\de\28\da\b7\8e\26\3f\ad\bf\a4"
    "\2c\3a\9d\e4\50\78\92\0d\6a\5f\cc\9b\54\7e\46\62\f6\8d\13\c2\90\d8\b8\e8\2e\39\f7\5e\82\c3\af\f5"
    "\9f\5d\80\be\69\d0\93\7c\6f\d5\2d\a9\cf\25\12\b3\c8\ac\99\3b\10\18\7d\a7\e8\9c\63\6e\db\3b\bb\7b"
    "\cd\26\78\09\6e\59\18\f4\ec\9a\b7\01\83\4f\9a\a8\e6\95\6e\65\aa\ff\e6\7e\21\bc\cf\08\ef\15\e8\e6"
    "\ba\e7\9b\d9\4a\6f\36\ce\ea\9f\09\d4\29\b0\7c\d6\31\a4\b2\af\2a\3f\23\31\c6\a5\94\30\35\a2\66\c0"
    "\74\4e\bc\37\fc\82\ca\a6\e0\90\d0\b0\33\a7\d8\15\f1\04\98\4a\41\ec\da\f7\7f\cd\50\0e\17\91\f6\2f"
    "\76\4d\d6\8d\43\ef\b0\4d\cc\aa\4d\54\e4\96\04\df\9e\d1\b5\e3\4c\6a\88\1b\c1\2c\1f\b8\46\65\51\7f"
    "\9d\5e\ea\04\01\8c\35\5d\fa\87\74\73\fb\0b\41\2e\b3\67\1d\5a\92\db\d2\52\e9\10\56\33\6d\d6\47\13"
    "\9a\d7\61\8c\37\a1\0c\7a\59\f8\14\8e\eb\13\3c\89\ce\a9\27\ee\b7\61\c9\35\e1\1c\e5\ed\7a\47\b1\3c"
    "\9c\d2\df\59\55\f2\73\3f\18\14\ce\79\73\c7\37\bf\53\f7\cd\ea\5f\fd\aa\5b\df\3d\6f\14\78\44\db\86"
    "\ca\af\f3\81\b9\68\c4\3e\38\24\34\2c\c2\a3\40\5f\16\1d\c3\72\bc\e2\25\0c\28\3c\49\8b\ff\0d\95\41"
    "\39\a8\01\71\08\0c\b3\de\d8\b4\e4\9c\64\56\c1\90\7b\cb\84\61\d5\32\b6\70\48\6c\5c\74\d0\b8\57\42")
  (func (export "f") (param i32) (result i32)
    (i32.xor
      (i32.xor
        (i32.load offset=65792 (i32.shl (i32.load8_u offset=65536 (i32.and (i32.shr_u (local.get 0) (i32.const 0)) (i32.const 255))) (i32.const 2)))
        (i32.rotl (i32.load offset=65792 (i32.shl (i32.load8_u offset=65536 (i32.and (i32.shr_u (local.get 0) (i32.const 8)) (i32.const 255))) (i32.const 2))) (i32.const 8)))
      (i32.xor
        (i32.rotl (i32.load offset=65792 (i32.shl (i32.load8_u offset=65536 (i32.and (i32.shr_u (local.get 0) (i32.const 16)) (i32.const 255))) (i32.const 2))) (i32.const 16))
        (i32.rotl (i32.load offset=65792 (i32.shl (i32.load8_u offset=65536 (i32.and (i32.shr_u (local.get 0) (i32.const 24)) (i32.const 255))) (i32.const 2))) (i32.const 24))))))
