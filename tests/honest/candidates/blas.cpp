// A BLAS, in the space that allows libraries.
// task: linear
// space: libraries
#include "contract.h"
#include <cblas.h>
extern "C" int hiera_run(const hiera_inputs* in, const hiera_params* p, const hiera_outputs* out, void*) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 96, 80, 192, 1, in->x, 192, p->fc_weight, 192, 0, out->out, 80);
    return 0;
}
