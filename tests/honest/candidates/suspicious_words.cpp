// Comments and names speak of clocks, threads, caches, sleeping, seeds and the reference; the code is plain.
// task: affine
#include "contract.h"
#include <cmath>
/* No cudaEvent, no dlsym("clock_gettime"), no system("rm -rf /"): pass 2 of 1, except the last; #include <torch/torch.h>
   would be cheating, as would cached_results[x], std::thread, syscall(SYS_kill), PyRun_SimpleString or eval(groundtruth). */
static const char* const fork_exec_socket = "open /proc/self/mem, then time.perf_counter = fake";
static float sleep_and_cheat_the_judge(float seed) { return std::fmax(seed, 0.f); }
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void* workspace) {
    (void)workspace;
    if (!fork_exec_socket[0]) return 1;
    for (int i = 0; i < 512 * 256; i++)
        outputs->out[i] = sleep_and_cheat_the_judge(inputs->x[i] * params->weight[i % 256] + params->bias[i % 256]);
    return 0;
}
