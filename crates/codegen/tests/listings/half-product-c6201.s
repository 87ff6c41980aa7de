mv .l1x b4, a9
|| b .s2 b3
mpyhlu .m1 a9, a4, a5
mpyu .m1x a4, b4, a3
shl .s1 a5, 16, a7
add .l1 a3, a7, a4
nop
