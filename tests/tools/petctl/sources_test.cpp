// petctl sources: the table and the list that a scanner description has.
#include <nlohmann/json.hpp>

#include "config/scanner/scanner.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"
#include "tools/petctl/text/sources.hpp"

using namespace petacq::petctl;
using namespace petacq::test;
using nlohmann::json;

namespace {

json heard() {
    return json::parse(R"({
        "sources": [
            {"id": 0, "address": "10.0.0.1:5000", "state": "active", "datagrams": 1234, "frames": 98765,
             "bdms": "0-2,5", "first_seen_s": 31.2, "last_seen_s": 0.0},
            {"id": 1, "address": "", "state": "silent", "datagrams": 0, "frames": 0, "bdms": "",
             "first_seen_s": null, "last_seen_s": null}],
        "unknown_sources": [
            {"id": 9, "address": "10.0.0.9:5000", "datagrams": 7, "frames": 70, "bdms": "3,4",
             "first_seen_s": 2.0, "last_seen_s": 1.0},
            {"id": null, "address": "10.0.0.10:6000", "datagrams": 2, "frames": 4, "bdms": "255",
             "first_seen_s": 2.0, "last_seen_s": 1.0}]
    })");
}

}  // namespace

TEST_CASE("petctl: sources as a table and as a list", "[control]") {
    TestServer server;
    server.handler.set_status(heard());
    Petctl petctl({"--socket", server.socket().string(), "sources"});
    CHECK(petctl.wait() == 0);
    CHECK(petctl.output() ==
          "  source  address         state    datagrams  frames  bdms   first seen  last seen\n"
          "  0       10.0.0.1:5000   active       1,234  98,765  0-2,5  31.2 s ago  0.0 s ago\n"
          "  1       -               silent           0       0  -           never      never\n"
          "  9       10.0.0.9:5000   unknown          7      70  3,4     2.0 s ago  1.0 s ago\n"
          "  -       10.0.0.10:6000  unknown          2       4  255     2.0 s ago  1.0 s ago\n"
          "\nAs \"sources\" of a scanner description:\n" +
              list_text(sources_heard(heard())));
    Petctl only({"--socket", server.socket().string(), "sources", "--json"});
    CHECK(only.wait() == 0);
    CHECK(only.output() ==
          "[\n"
          "    {\"bdms\":[0,1,2,5],\"id\":0},\n"
          "    {\"bdms\":[3,4],\"id\":9},\n"
          "    {\"address\":\"10.0.0.10\",\"bdms\":[255],\"port\":6000}\n"
          "]\n");
}

TEST_CASE("petctl: sources names what is configured but silent", "[control]") {
    json status = heard();
    status["reception"] = {{"listed",
                            {{{"id", 0}, {"address", ""}, {"bdms", "0-3,5-7"}},
                             {{"id", 1}, {"address", ""}, {"bdms", "8-15"}},
                             {{"id", nullptr}, {"address", "10.0.0.10:6000"}, {"bdms", "255"}}}}};
    TestServer server;
    server.handler.set_status(status);
    Petctl petctl({"--socket", server.socket().string(), "sources"});
    CHECK(petctl.wait() == 0);
    // BDM 3 comes from source 9.
    CHECK_THAT(petctl.output(),
               contains("\nConfigured but silent, and not in this list: BDM 6 of source 0, BDM "
                        "7 of source 0, source 1 (BDM 8-15)\n"));
}

TEST_CASE("petctl: the list of sources is what a scanner description accepts") {
    json status = heard();
    status["unknown_sources"].erase(1);
    json scanner = json::parse(R"({
        "name": "six", "tick_ps": 10,
        "geometry": {"channels": 3, "modules": {"y": 2, "z": 1}, "blocks": {"y": 1, "z": 1},
                     "crystals": {"y": 2, "z": 2}, "bdm_count": 6, "du_count": 1, "position_size": 4},
        "dimensions": {"ring_radius_mm": 20, "crystal_pitch_y_mm": 1, "crystal_pitch_z_mm": 1,
                       "crystal_length_mm": 10}})");
    scanner["sources"] = sources_heard(status);
    CHECK(petacq::config::scanner_from_json(scanner).sources.size() == 2);
}

TEST_CASE("petctl: sources of odd documents") {
    CHECK(list_text(sources_heard(json())) == "[]\n");
    CHECK(list_text(sources_heard({{"sources", 5}})) == "[]\n");
    for (const char* bdms : {"", "x", "-", "3-", "256", "7-x", ",", "1,,2", "99999999999"}) {
        CAPTURE(bdms);
        const json document = {{"sources", {{{"id", 1}, {"bdms", bdms}}}}};
        const json list = sources_heard(document);
        CHECK(list.size() <= 1);
    }
    CHECK(list_text(sources_heard({{"sources", {{{"address", "nowhere"}, {"bdms", "1"}}}}})) == "[]\n");
    CHECK(sources_lines(json()).size() == 1);
}
