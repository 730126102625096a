// Catch2 v2 has no library with a main function. As in v3, a name without a test is an error: otherwise
// CTest, which runs each test by its name, would count a mangled name as a passed test.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

int main(int argc, char** argv) {
    Catch::Session session;
    const int refused = session.applyCommandLine(argc, argv);
    if (refused != 0) return refused;
    session.configData().warnings =
        static_cast<Catch::WarnAbout::What>(session.configData().warnings | Catch::WarnAbout::NoTests);
    return session.run();
}
