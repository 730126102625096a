// Users and groups: the same on every host, and found without its name services.
#include <grp.h>
#include <pwd.h>

#include <array>

#include "tests/simulation/preload/intercept.hpp"

using petacq::simulation::world;

extern "C" {

PETACQ_INTERCEPT int getgrnam_r(const char* __restrict name, group* __restrict entry, char* __restrict buffer,
                                size_t size, group** __restrict found) {
    PETACQ_REAL(getgrnam_r);
    if (world == nullptr) return real_getgrnam_r(name, entry, buffer, size, found);
    *found = nullptr;
    return 0;
}

PETACQ_INTERCEPT int getpwuid_r(uid_t uid, passwd* __restrict entry, char* __restrict buffer, size_t size,
                                passwd** __restrict found) {
    PETACQ_REAL(getpwuid_r);
    if (world == nullptr) return real_getpwuid_r(uid, entry, buffer, size, found);
    static std::array<char, 9> name{"operator"};
    *entry = {};
    entry->pw_name = name.data();
    entry->pw_uid = uid;
    *found = entry;
    return 0;
}

}  // extern "C"
