// Catch2 v2 has no library with a main of its own. As with v3, it is an error when no test has the name asked
// for: CTest asks for each by its name, and would take a name that was mangled on the way for a test that
// passed.
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
