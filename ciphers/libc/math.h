/*
 * <math.h> for WebAssembly without a library, for code that includes it and needs none of
 * it: ciphers compute in integers. What is only declared here disappears if nobody reaches
 * it, and is otherwise refused by the linker, by name.
 */
#ifndef CIPHERMILL_MATH_H
#define CIPHERMILL_MATH_H

#define M_E 2.7182818284590452354
#define M_PI 3.14159265358979323846
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

double ceil(double x);
double cos(double x);
double exp(double x);
double exp2(double x);
double fabs(double x);
double floor(double x);
double fmod(double x, double y);
double log(double x);
double log10(double x);
double log2(double x);
double pow(double x, double y);
double round(double x);
double sin(double x);
double sqrt(double x);
double tan(double x);
double trunc(double x);

#endif
