// The functions of the C library behind those that are intercepted.
#pragma once

#include <dlfcn.h>

// Declares real_NAME, the function that comes after ours.
#define PETACQ_REAL(name) \
    static auto* const real_##name = reinterpret_cast<decltype(&::name)>(::dlsym(RTLD_NEXT, #name))
