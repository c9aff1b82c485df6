// A pool of threads is started in hiera_prepare, once, and waits between the calls.
// task: affine
#include "contract.h"
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex mutex;
static std::condition_variable wake, ready;
static const hiera_inputs* in;
static const hiera_params* p;
static const hiera_outputs* out;
static long round_number;
static int left;
static void rows(int from, int to) {
    for (int i = from * 256; i < to * 256; i++)
        out->out[i] = std::fmax(in->x[i] * p->weight[i % 256] + p->bias[i % 256], 0.f);
}
static void serve(int half) {
    for (long seen = 0;;) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return round_number != seen; });
        seen = round_number;
        lock.unlock();
        rows(half * 256, half * 256 + 256);
        lock.lock();
        if (--left == 0) ready.notify_one();
    }
}
extern "C" int hiera_prepare(const hiera_params*, void*) {
    static bool started = false;
    for (int half = 0; !started && half < 2; half++) std::thread(serve, half).detach();
    started = true;
    return 0;
}
extern "C" int hiera_run(const hiera_inputs* inputs, const hiera_params* params, const hiera_outputs* outputs, void* workspace) {
    (void)workspace;
    std::unique_lock lock(mutex);
    in = inputs, p = params, out = outputs, left = 2, round_number++;
    wake.notify_all();
    ready.wait(lock, [] { return left == 0; });
    return 0;
}
