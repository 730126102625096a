// A thread of the program apart from the thread of the kernel that runs it: its stack, registers and
// thread-local storage. One thread of the kernel runs all of them in turn, so that passing the turn on needs
// no call of the kernel.
#pragma once

namespace petacq::simulation {

class Context {
  public:
    /// Called by a new thread of the kernel: gives its context away, and waits until leave(). Returns in the
    /// thread of the kernel that goes on with it.
    void give();
    /// Waits until give() has given it.
    void await();
    /// Goes on with another one, here. Returns when somebody goes on with this one.
    void pass_to(Context& next);
    /// As the last thing a thread does. Returns in the thread of the kernel that gave it, which ends, too.
    void leave(Context& next);

  private:
    static void release_left();

    void* stack_ = nullptr;  ///< where its registers are saved; nobody runs it
    int state_ = 0;          ///< a futex: 1 given, 2 taken back by its own thread of the kernel
};

}  // namespace petacq::simulation
