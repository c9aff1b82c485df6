// Threads of a pool are pinned, spin for a tenth of a millisecond and then sleep; one waits with a timeout, and looks around.
// task: affine
#include "contract.h"
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <thread>
static std::mutex mutex;
static std::condition_variable wake;
static std::atomic<long> asked{0}, done{0};
static const hiera_inputs* in;
static const hiera_params* p;
static const hiera_outputs* out;
static void rows(int from, int to) {
    for (int i = from * 256; i < to * 256; i++) out->out[i] = std::fmax(in->x[i] * p->weight[i % 256] + p->bias[i % 256], 0.f);
}
static void serve() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(1, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    for (long seen = 0;; done = ++seen) {
        auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
        while (asked == seen && std::chrono::steady_clock::now() < until) __builtin_ia32_pause();
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, std::chrono::milliseconds(20), [&] { return asked != seen; }));
        lock.unlock();
        rows(256, 512);
    }
}
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void*) {
    static bool started = (std::thread(serve).detach(), true);
    {
        std::lock_guard lock(mutex);
        in = inputs, p = params, out = outputs, asked++;
    }
    wake.notify_one();
    rows(0, 256);
    while (done != asked) std::this_thread::yield();
    return started ? 0 : 1;
}
