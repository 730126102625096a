#include "tests/simulation/preload/context.hpp"

#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "tests/simulation/preload/real.hpp"

extern "C" {

/// Saves the registers on the stack, and its address in `from`; goes on where `to` was saved.
void petacq_simulation_switch(void** from, void* const* to);
/// Saves them likewise and sets `state` to 1, waits without a stack until it is 2, and goes on where `stack`
/// was saved then.
void petacq_simulation_park(void** stack, int* state);
/// Whether a program may set the base of fs (x86-64), the address of its thread-local storage.
__attribute__((visibility("hidden"))) bool petacq_simulation_sets_fs = false;
}

// Both save what the calling convention lets a function expect after a call, and the thread-local storage.
// Neither works with a shadow stack (CET), which glibc only has on request.
#if defined(__x86_64__)
asm(R"(
.macro save
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    pushq %fs:0
.endm
.macro restore
    popq %rsi
    testb $1, petacq_simulation_sets_fs(%rip)
    jz 8f
    wrfsbase %rsi
    jmp 9f
8:  movl $0x1002, %edi      # ARCH_SET_FS
    movl $158, %eax         # arch_prctl
    syscall
9:  ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.endm

.text
.globl petacq_simulation_switch
.hidden petacq_simulation_switch
.type petacq_simulation_switch, @function
petacq_simulation_switch:
    save
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    restore
.size petacq_simulation_switch, . - petacq_simulation_switch

.globl petacq_simulation_park
.hidden petacq_simulation_park
.type petacq_simulation_park, @function
petacq_simulation_park:
    save
    movq %rsp, (%rdi)
    movq %rdi, %rbx
    movq %rsi, %rbp
    movl $1, (%rbp)
    movl $202, %eax         # futex
    movq %rbp, %rdi
    movl $129, %esi         # FUTEX_WAKE_PRIVATE
    movl $1, %edx
    syscall
1:  cmpl $2, (%rbp)
    je 2f
    movl $202, %eax
    movq %rbp, %rdi
    movl $128, %esi         # FUTEX_WAIT_PRIVATE
    movl $1, %edx
    xorl %r10d, %r10d
    syscall
    jmp 1b
2:  movq (%rbx), %rsp
    restore
.size petacq_simulation_park, . - petacq_simulation_park
)");
#elif defined(__aarch64__)
asm(R"(
.macro save
    sub sp, sp, #176
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mrs x9, tpidr_el0
    mrs x10, fpcr
    stp x9, x10, [sp, #160]
    mov x9, sp
    str x9, [x0]
.endm
.macro restore
    ldp x9, x10, [sp, #160]
    msr tpidr_el0, x9
    msr fpcr, x10
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #176
    ret
.endm

.text
.globl petacq_simulation_switch
.hidden petacq_simulation_switch
.type petacq_simulation_switch, %function
petacq_simulation_switch:
    save
    ldr x9, [x1]
    mov sp, x9
    restore
.size petacq_simulation_switch, . - petacq_simulation_switch

.globl petacq_simulation_park
.hidden petacq_simulation_park
.type petacq_simulation_park, %function
petacq_simulation_park:
    save
    mov x19, x0
    mov x20, x1
    mov w9, #1
    stlr w9, [x20]
    mov x8, #98             // futex
    mov x0, x20
    mov x1, #129            // FUTEX_WAKE_PRIVATE
    mov x2, #1
    svc #0
1:  ldar w9, [x20]
    cmp w9, #2
    b.eq 2f
    mov x8, #98
    mov x0, x20
    mov x1, #128            // FUTEX_WAIT_PRIVATE
    mov x2, #1
    mov x3, #0
    svc #0
    b 1b
2:  ldr x9, [x19]
    mov sp, x9
    restore
.size petacq_simulation_park, . - petacq_simulation_park
)");
#endif

namespace petacq::simulation {

namespace {

enum State : int { running, given, taken_back };

/// The state of the context that was left last: nobody uses its stack any more.
int* left = nullptr;

void futex(int* word, int operation, int value) {
    PETACQ_REAL(syscall);
    real_syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

#if defined(__x86_64__)
[[maybe_unused]] const bool found_out = [] {
    constexpr unsigned long fsgsbase = 2;  // HWCAP2_FSGSBASE
    return petacq_simulation_sets_fs = (::getauxval(AT_HWCAP2) & fsgsbase) != 0;
}();
#endif

}  // namespace

void Context::give() {
    petacq_simulation_park(&stack_, &state_);
    release_left();
}

void Context::await() {
    while (__atomic_load_n(&state_, __ATOMIC_ACQUIRE) == running)
        futex(&state_, FUTEX_WAIT, running);
}

void Context::pass_to(Context& next) {
    petacq_simulation_switch(&stack_, &next.stack_);
    release_left();
}

void Context::leave(Context& next) {
    left = &state_;
    petacq_simulation_switch(&stack_, &next.stack_);
}

void Context::release_left() {
    if (left == nullptr) return;
    int* const state = std::exchange(left, nullptr);
    __atomic_store_n(state, static_cast<int>(taken_back), __ATOMIC_RELEASE);
    futex(state, FUTEX_WAKE, 1);
}

}  // namespace petacq::simulation
