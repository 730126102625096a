// petbench as its users see it: each suite runs, in the smallest sizes, and prints its figures.
#include <cstdio>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::test;

namespace {

Outcome petbench(const std::string& arguments) {
    return shell(quoted(PETBENCH_PROGRAM) + arguments);
}

const std::string small_scanner = " --scanner '" PETACQ_SOURCE_DIR "/config/examples/small.scanner.json' ";
const std::string few_frames = " --frames 2000 --slice-frames 500 --threads 1 2 --repeat 1 ";

}  // namespace

TEST_CASE("petbench receive measures both and gives their ratio", "[petbench]") {
    const Outcome outcome = petbench("receive --payload 1472 --seconds 0.05 --repetitions 1");
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "payload 1472 bytes\n"));
    CHECK(contains(outcome.out, "  bare "));
    CHECK(contains(outcome.out, "  ours "));
    CHECK(contains(outcome.out, "  ours/bare: rate "));
}

TEST_CASE("petbench receive measures over veth pairs, or says why not", "[petbench]") {
    const Outcome outcome =
        petbench("receive --veth --pairs 2 --payload 1472 --seconds 0.05 --repetitions 1");
    INFO(outcome.out);
    if (outcome.status == 0) {
        CHECK(contains(outcome.out, "2 pair(s) over veth"));
        CHECK(contains(outcome.out, "  ours/bare: rate "));
    } else {
        CHECK(outcome.status == 74);
        CHECK(contains(outcome.out, "petbench: veth: "));
    }
}

TEST_CASE("petbench acquisition measures the acquisition thread", "[petbench]") {
    // Without GRO; more boards than sockets.
    const Outcome outcome =
        petbench("acquisition --millions 0.1 --repetitions 1 --sources 7 --sockets 3 --per-read 1");
    INFO(outcome.out);
    CHECK(outcome.status == 0);  // it fails if a datagram counts as lost
    CHECK(contains(outcome.out, "7 sources on 3 sockets, 1 datagrams of 91 frames in a read"));
    CHECK(contains(outcome.out, "ns of processor time per datagram"));
}

TEST_CASE("petbench pipeline measures the stages and the whole", "[petbench]") {
    const Outcome outcome = petbench("pipeline" + small_scanner + few_frames + "--delay-ns 200");
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    for (const char* row :
         {"\nconvert ", "\norder ", "\ncoincidence ", "\nwhole,  1 thread ", "\nwhole,  2 threads "})
        CHECK(contains(outcome.out, row));
    CHECK(contains(outcome.out, "\naccepted "));
}

TEST_CASE("petbench pipeline measures by any rules", "[petbench]") {
    for (const char* rules : {"--policy TakeAllGoods", "--policy TakeWinnerOfGoods --mode every"}) {
        const Outcome outcome =
            petbench("pipeline" + small_scanner + few_frames + "--rate 1e9 --window-ns 10 " + rules);
        INFO(outcome.out);
        CHECK(outcome.status == 0);
        CHECK(contains(outcome.out, "\naccepted "));
    }
    CHECK(petbench("pipeline" + small_scanner + few_frames + "--policy takeAll").status == 64);
    CHECK(petbench("pipeline" + small_scanner + few_frames + "--mode both").status == 64);
}

TEST_CASE("petbench pipeline takes any scanner", "[petbench]") {
    for (const char* name : {"insert", "total-body"}) {
        const Outcome outcome = petbench("pipeline --repeat 1 --frames 65536 --threads 1 --scanner " +
                                         std::string("'" PETACQ_SOURCE_DIR "/config/examples/scanners/") +
                                         name + ".scanner.json'");
        INFO(outcome.out);
        CHECK(outcome.status == 0);
        CHECK_FALSE(contains(outcome.out, "accepted 0.0 %"));
        CHECK_FALSE(contains(outcome.out, "prompts 0,"));
    }
}

TEST_CASE("petbench refuses what needs a GPU where there is none", "[petbench]") {
    const std::string on_gpu = "pipeline --backend cuda --repeat 1 --frames 1000" + small_scanner;
    const Outcome sort = petbench("sort --from 1024 --to 1024 --repeat 1");
    INFO(sort.out);
    if (sort.status != 0) {
        CHECK(sort.status == 70);
        CHECK(sort.out.rfind("petbench: sort: needs a GPU", 0) == 0);
        CHECK(contains(sort.out, "CUDA"));
        const Outcome pipeline = petbench(on_gpu);
        INFO(pipeline.out);
        CHECK(pipeline.status == 70);
        CHECK(pipeline.out.rfind("petbench: ", 0) == 0);
        CHECK(contains(pipeline.out, "CUDA"));
    }
    CHECK(petbench(on_gpu + "--threads 1 2").status == 64);
    CHECK(petbench(on_gpu + "--slice-frames 10").status == 64);
    CHECK(petbench(on_gpu + "--devices 0,x").status == 64);
    CHECK(petbench("pipeline --devices 0,1" + small_scanner).status == 64);
    CHECK(petbench("pipeline --backend gpu" + small_scanner).status == 64);
}

TEST_CASE("petbench measures on the GPU", "[petbench]") {
    const Outcome sort = petbench("sort --from 1024 --to 4096 --repeat 1");
    if (sort.status == 70) {
        std::printf("skipped: CUDA: %s", sort.out.c_str());
        return;
    }
    INFO(sort.out);
    CHECK(sort.status == 0);
    for (const char* part : {"\nrandom;", "\nnearly sorted;", "\nall equal;", "\n1 Ki ", "\n4 Ki "})
        CHECK(contains(sort.out, part));

    const Outcome pipeline = petbench(
        "pipeline --backend cuda --repeat 1 --frames 1000 --slice-frames 100000 --threads 1 --delay-ns 200" +
        small_scanner + "--policy TakeWinnerOfGoods");
    INFO(pipeline.out);
    CHECK(pipeline.status == 0);
    const Outcome nowhere = petbench("pipeline --backend cuda --devices 0,999" + small_scanner);
    CHECK(nowhere.status == 70);
    CHECK(contains(nowhere.out, "there is no device 999"));
    for (const char* part : {"\nwhole pipeline, ", "\ndevice only, ", "\nPoisson ", "\nall times equal ",
                             "  60 per window, TakeAllGoods "})
        CHECK(contains(pipeline.out, part));
}

TEST_CASE("petbench image measures the parts of an image, and compares the images of its back-ends",
          "[petbench]") {
    for (const std::string model : {"", "--tof-fwhm-ps 200 --psf-mm 2 "}) {
        const Outcome outcome = petbench("image" + small_scanner + model +
                                         "--millions 0.01 --rounds 1 --iterations 1 --backend cpu cpu");
        INFO(outcome.out);
        CHECK(outcome.status == 0);
        for (const char* row :
             {"\n  pairs counted ", "\n  sensitivity ", "\n  iterations ", " M prompts/s per iteration",
              "\n  whole ", "\ncpu and cpu: largest difference 0 "})
            CHECK(contains(outcome.out, row));
    }
}

TEST_CASE("petbench writer measures the writer and plain writes, and leaves nothing behind", "[petbench]") {
    const TemporaryDirectory directory;
    const Outcome outcome =
        petbench("writer --gigabytes 0.01 --block-bytes 4096 --rounds 1 --files 1 3 --dir '" +
                 directory.path().string() + "'");
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "CRC-32C "));
    for (const char* row :
         {"\nplain x 1 ", "\nwriter x 1 ", " of plain x 1 ", "\nwriter x 3 ", " of plain x 3 "})
        CHECK(contains(outcome.out, row));
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("petbench replay measures the pipeline and a replay, and leaves nothing behind", "[petbench]") {
    const TemporaryDirectory directory;
    const std::string in = "cd '" + directory.path().string() + "' && ";
    const std::string tables = " --scanner small.scanner.json --calibration small.h5 ";
    const Outcome made =
        shell(in +
              "cp '" PETACQ_SOURCE_DIR "'/config/examples/small.* . && mkdir runs && '" PETCAL_PROGRAM
              "' make --scanner small.scanner.json --output small.h5 && '" PETSIM_PROGRAM "'" +
              tables + "--point 1,2,3,1 --duration-s 0.05 --quiet --write a.pcap");
    INFO(made.out);
    REQUIRE(made.status == 0);
    const Outcome outcome = shell(in + quoted(PETBENCH_PROGRAM) +
                                  "replay --config small.json --capture a.pcap --rounds 1 --dir runs");
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "\npipeline, frames in memory "));
    CHECK(contains(outcome.out, "\npetacqd --replay, run on disk "));
    CHECK(std::filesystem::is_empty(directory.path() / "runs"));
}

TEST_CASE("petbench live judges runs of a real petacqd, and leaves nothing behind", "[petbench]") {
    const TemporaryDirectory directory;
    const std::string live = "live --seconds 1 --sockets 2 --backend cpu --threads 2 --frames 50000 --dir '" +
                             directory.path().string() + "'" + small_scanner;
    // Only the sender may be held up, by other processes.
    const std::regex sender("failed: the sender ended at [0-9.]+ M frames/s\n");
    Outcome outcome;
    for (int i = 0; i < 10; ++i) {
        outcome = petbench(live + R"(--rate 200000 --delay-ns 200 --raw --patch )" +
                           R"('{"watermark": {"source_timeout_ms": 10000}}')");
        if (!std::regex_search(outcome.out, sender)) break;
    }
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out,
                   "  step  1      0.20 M frames/s (0.20 M in a second of detector time), at the end "));
    CHECK(contains(outcome.out, " s behind   passed\n"));
    for (const char* part :
         {"\nhighest rate without loss: ", "\n    receive ", "\n    acquisition ",
          "\n  busiest stage: ", "\n  latency ", "\n  UDP ", "\n  bare receive loop, 2 pairs "})
        CHECK(contains(outcome.out, part));
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("in an overload that petbench live offers, petacqd only drops, and a replay of what it kept agrees",
          "[petbench]") {
    const TemporaryDirectory directory;
    // Groups of many singles keep the pipeline busy, so that the capture keeps up and senders have cores.
    const std::string overload =
        "live --scanner '" PETACQ_SOURCE_DIR
        "/config/examples/mouse.scanner.json' --sockets 2 --threads 1 "
        "--frames 50000 --rate 5e5 --seconds 2 --overload 40 --overload-seconds 1 --window-ns 300 --raw "
        "--dir '" +
        directory.path().string() +
        R"(' --patch '{"coincidence": {"multiples_policy": "TakeAllGoods"}, )"
        R"("watermark": {"source_timeout_ms": 10000}, "receive": {"batch_count": 256, "batch_bytes": 131072}}')";
    // On a busy host the backlog outlasts a second, or the disk is too slow for the capture.
    const std::regex late("failed: [0-9]+ datagrams lost later than a second after the overload\n");
    const std::regex compared("[1-9][0-9]* lost (.|\n)* list-mode: the replay of the raw capture has ");
    bool done = false;
    for (int i = 0; i < 5 && !done; ++i) {
        const Outcome outcome = petbench(overload);
        INFO(outcome.out);
        CHECK(contains(outcome.out, "\noverload of 40 times for 1 s: "));
        if (!std::regex_search(outcome.out, late)) {
            CHECK(contains(outcome.out, " passed\n"));
            CHECK(outcome.status == 0);
        }
        CHECK(std::filesystem::is_empty(directory.path()));
        done = std::regex_search(outcome.out, compared);
    }
    CHECK(done);
}

TEST_CASE("petbench live fails when an overload does more than drop", "[petbench]") {
    // As good as no memory for the frames that wait for slow sources.
    const Outcome outcome = petbench(
        "live --rate 5e5 --seconds 2 --overload 2 --overload-seconds 0.5 --sockets 2 --frames 50000" +
        small_scanner + R"(--patch '{"pipeline": {"max_pending_singles": 1024, "slice_frames": 1024}}')");
    INFO(outcome.out);
    CHECK(outcome.status == 1);
    CHECK(contains(outcome.out, " slices with too many pending singles"));
    CHECK(contains(outcome.out, "petbench: 1 of 1 overloads did more than drop datagrams"));
}

TEST_CASE("petbench live refuses what it cannot measure", "[petbench]") {
    CHECK(petbench("live --overload 2").status == 64);
    CHECK(petbench("live --rate 1e6 --overload 0").status == 64);
    CHECK(petbench("live --rate 1e6 --overload 2 --seconds 1").status == 64);
    CHECK(petbench("live --from 2e6 --to 1e6").status == 64);
    CHECK(petbench("live --sockets 4 --senders 2").status == 64);
    const Outcome few = petbench("live --frames 1000 --sockets 5" + small_scanner);
    CHECK(few.status == 70);
    CHECK(contains(few.out, "the stream has 4 sources"));
}

TEST_CASE("petbench reports errors by its exit status", "[petbench]") {
    CHECK(petbench("--help").status == 0);
    CHECK(petbench("").status == 64);
    CHECK(petbench("everything").status == 64);
    CHECK(petbench("pipeline --scanner /nowhere.json").status == 64);
    CHECK(petbench("writer --block-bytes 4097").status == 64);
    CHECK(petbench("writer --queue-blocks 1").status == 64);

    const TemporaryDirectory directory;
    const std::string file = (directory / "s.json").string();
    write_file(file, "{}");
    const Outcome wrong = petbench("pipeline --scanner '" + file + "'");
    CHECK(wrong.status == 78);
    CHECK(contains(wrong.out, "petbench: " + file + ": "));

    const Outcome unwritable = petbench("writer --gigabytes 0.01 --block-bytes 4096 --rounds 1 --dir /proc");
    CHECK(unwritable.status == 74);
    CHECK(contains(unwritable.out, "petbench: /proc/"));
    CHECK(petbench("pipeline" + small_scanner + few_frames + ">/dev/full").status == 74);
}
