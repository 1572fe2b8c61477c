#include "textflag.h"

// Each constant is one byte, sixteen times.
DATA lower<>+0(SB)/8, $0x2020202020202020
DATA lower<>+8(SB)/8, $0x2020202020202020
GLOBL lower<>(SB), RODATA|NOPTR, $16
DATA a<>+0(SB)/8, $0x6161616161616161
DATA a<>+8(SB)/8, $0x6161616161616161
GLOBL a<>(SB), RODATA|NOPTR, $16
DATA z<>+0(SB)/8, $0x1919191919191919
DATA z<>+8(SB)/8, $0x1919191919191919
GLOBL z<>(SB), RODATA|NOPTR, $16
DATA slash<>+0(SB)/8, $0x2f2f2f2f2f2f2f2f
DATA slash<>+8(SB)/8, $0x2f2f2f2f2f2f2f2f
GLOBL slash<>(SB), RODATA|NOPTR, $16
DATA nine<>+0(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA nine<>+8(SB)/8, $0x0a0a0a0a0a0a0a0a
GLOBL nine<>(SB), RODATA|NOPTR, $16
DATA plus<>+0(SB)/8, $0x2b2b2b2b2b2b2b2b
DATA plus<>+8(SB)/8, $0x2b2b2b2b2b2b2b2b
GLOBL plus<>(SB), RODATA|NOPTR, $16

// func base64Blocks(p []byte) int
//
// A byte is a letter if its lower case less 'a' is at most 25, and one of "/0123456789" if it less '/' is at most 10. The bytes have no sign,
// so x <= y where min(x, y) == x. All instructions belong to SSE2, which every amd64 has.
TEXT ·base64Blocks(SB), NOSPLIT, $0-32
	MOVQ  p_base+0(FP), SI
	MOVQ  p_len+8(FP), CX
	XORQ  AX, AX
	SUBQ  $16, CX
	MOVOU lower<>(SB), X8
	MOVOU a<>(SB), X9
	MOVOU z<>(SB), X10
	MOVOU slash<>(SB), X11
	MOVOU nine<>(SB), X12
	MOVOU plus<>(SB), X13

next:
	CMPQ     AX, CX
	JGT      done
	MOVOU    (SI)(AX*1), X0
	MOVO     X0, X1
	MOVO     X0, X2
	POR      X8, X1
	PSUBB    X9, X1
	MOVO     X1, X3
	PMINUB   X10, X3
	PCMPEQB  X1, X3          // letters
	PSUBB    X11, X2
	MOVO     X2, X4
	PMINUB   X12, X4
	PCMPEQB  X2, X4          // '/' and digits
	PCMPEQB  X13, X0         // '+'
	POR      X3, X0
	POR      X4, X0
	PMOVMSKB X0, DX
	CMPL     DX, $0xffff
	JNE      done
	ADDQ     $16, AX
	JMP      next

done:
	MOVQ AX, ret+24(FP)
	RET
