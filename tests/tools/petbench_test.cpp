// petbench as its users see it: each suite runs, in the smallest sizes, and says what it found.
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"

namespace {

struct Outcome {
    int status = -1;
    std::string output;  ///< standard output and error
};

Outcome shell(const std::string& words) {
    const std::string command = "{ " + words + "; } 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c)
    REQUIRE(pipe != nullptr);
    Outcome outcome;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        outcome.output.append(buffer.data(), n);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

Outcome petbench(const std::string& arguments) {
    return shell("'" PETBENCH_PROGRAM "' " + arguments);
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class ScratchDirectory {
  public:
    ScratchDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "petbench-test-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

const std::string small_scanner = " --scanner '" PETACQ_SOURCE_DIR "/config/examples/small.scanner.json' ";
const std::string few_frames = " --frames 2000 --slice-frames 500 --threads 1 2 --repeat 1 ";

}  // namespace

TEST_CASE("petbench receive measures both and gives their ratio", "[petbench]") {
    const Outcome outcome = petbench("receive --payload 1472 --seconds 0.05 --repetitions 1");
    INFO(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.output, "payload 1472 bytes\n"));
    CHECK(contains(outcome.output, "  bare "));
    CHECK(contains(outcome.output, "  ours "));
    CHECK(contains(outcome.output, "  ours/bare: rate "));
}

TEST_CASE("petbench pipeline measures the stages and the whole", "[petbench]") {
    const Outcome outcome = petbench("pipeline" + small_scanner + few_frames + "--delay-ns 200");
    INFO(outcome.output);
    CHECK(outcome.status == 0);
    for (const char* row :
         {"\nconvert ", "\norder ", "\ncoincidence ", "\nwhole,  1 thread ", "\nwhole,  2 threads "})
        CHECK(contains(outcome.output, row));
    CHECK(contains(outcome.output, "\naccepted "));
}

TEST_CASE("petbench pipeline measures by any rules", "[petbench]") {
    for (const char* rules : {"--policy TakeAllGoods", "--policy TakeWinnerOfGoods --mode every"}) {
        const Outcome outcome =
            petbench("pipeline" + small_scanner + few_frames + "--rate 1e9 --window-ns 10 " + rules);
        INFO(outcome.output);
        CHECK(outcome.status == 0);
        CHECK(contains(outcome.output, "\naccepted "));
    }
    CHECK(petbench("pipeline" + small_scanner + few_frames + "--policy takeAll").status == 64);
    CHECK(petbench("pipeline" + small_scanner + few_frames + "--mode both").status == 64);
}

TEST_CASE("petbench refuses what needs a GPU where there is none", "[petbench]") {
    const std::string on_gpu = "pipeline --backend cuda --repeat 1 --frames 1000" + small_scanner;
    const Outcome sort = petbench("sort --from 1024 --to 1024 --repeat 1");
    INFO(sort.output);
    if (sort.status != 0) {
        CHECK(sort.status == 70);
        CHECK(sort.output.rfind("petbench: sort: needs a GPU", 0) == 0);
        CHECK(contains(sort.output, "CUDA"));
        const Outcome pipeline = petbench(on_gpu);
        INFO(pipeline.output);
        CHECK(pipeline.status == 70);
        CHECK(pipeline.output.rfind("petbench: ", 0) == 0);
        CHECK(contains(pipeline.output, "CUDA"));
    }
    CHECK(petbench(on_gpu + "--threads 1 2").status == 64);
    CHECK(petbench(on_gpu + "--slice-frames 10").status == 64);
    CHECK(petbench("pipeline --backend gpu" + small_scanner).status == 64);
}

TEST_CASE("petbench measures on the GPU", "[petbench]") {
    const Outcome sort = petbench("sort --from 1024 --to 4096 --repeat 1");
    if (sort.status == 70) {
        std::printf("skipped: CUDA: %s", sort.output.c_str());
        return;
    }
    INFO(sort.output);
    CHECK(sort.status == 0);
    for (const char* part : {"\nrandom;", "\nnearly sorted;", "\nall equal;", "\n1 Ki ", "\n4 Ki "})
        CHECK(contains(sort.output, part));

    const Outcome pipeline = petbench(
        "pipeline --backend cuda --repeat 1 --frames 1000 --slice-frames 100000 --threads 1 --delay-ns 200" +
        small_scanner + "--policy TakeWinnerOfGoods");
    INFO(pipeline.output);
    CHECK(pipeline.status == 0);
    for (const char* part : {"\nwhole pipeline, ", "\ndevice only, ", "\nPoisson ", "\nall times equal ",
                             "  60 per window, TakeAllGoods ", "\nexpected randoms "})
        CHECK(contains(pipeline.output, part));
}

TEST_CASE("petbench image measures the parts of an image, and compares the images of its back-ends",
          "[petbench]") {
    const Outcome outcome =
        petbench("image" + small_scanner + "--millions 0.01 --rounds 1 --iterations 1 --backend cpu cpu");
    INFO(outcome.output);
    CHECK(outcome.status == 0);
    for (const char* row : {"\n  pairs counted ", "\n  sensitivity ", "\n  matrix made ",
                            "\n  EM without that ", "\n  whole ", "\ncpu and cpu: largest difference 0 "})
        CHECK(contains(outcome.output, row));
}

TEST_CASE("petbench writer measures writer and dd, and leaves nothing behind", "[petbench]") {
    const ScratchDirectory directory;
    const Outcome outcome = petbench("writer --gigabytes 0.01 --block-bytes 4096 --rounds 1 --dir '" +
                                     directory.path().string() + "'");
    INFO(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.output, "CRC-32C "));
    CHECK(contains(outcome.output, "\nround 1 "));
    CHECK(contains(outcome.output, " writer/dd "));
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("petbench replay measures the pipeline and a replay, and leaves nothing behind", "[petbench]") {
    const ScratchDirectory directory;
    const std::string in = "cd '" + directory.path().string() + "' && ";
    const std::string tables = " --scanner small.scanner.json --calibration small.h5 ";
    const Outcome made =
        shell(in +
              "cp '" PETACQ_SOURCE_DIR "'/config/examples/small.* . && mkdir runs && '" PETCAL_PROGRAM
              "' make --scanner small.scanner.json --output small.h5 && '" PETSIM_PROGRAM "'" +
              tables + "--point 1,2,3,1 --duration-s 0.05 --quiet --write a.pcap");
    INFO(made.output);
    REQUIRE(made.status == 0);
    const Outcome outcome = shell(in + "'" PETBENCH_PROGRAM
                                       "' replay --config small.json --capture a.pcap --rounds 1 --dir runs");
    INFO(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.output, "\npipeline, frames in memory "));
    CHECK(contains(outcome.output, "\npetacqd --replay, run on disk "));
    CHECK(std::filesystem::is_empty(directory.path() / "runs"));
}

TEST_CASE("petbench tells by its exit status what was wrong", "[petbench]") {
    CHECK(petbench("--help").status == 0);
    CHECK(petbench("").status == 64);
    CHECK(petbench("everything").status == 64);
    CHECK(petbench("pipeline --scanner /nowhere.json").status == 64);
    CHECK(petbench("writer --block-bytes 4097").status == 64);
    CHECK(petbench("writer --queue-blocks 1").status == 64);

    const ScratchDirectory directory;
    const std::string file = (directory.path() / "s.json").string();
    std::ofstream(file) << "{}";
    const Outcome wrong = petbench("pipeline --scanner '" + file + "'");
    CHECK(wrong.status == 78);
    CHECK(contains(wrong.output, "petbench: " + file + ": "));

    const Outcome unwritable = petbench("writer --gigabytes 0.01 --block-bytes 4096 --rounds 1 --dir /proc");
    CHECK(unwritable.status == 74);
    CHECK(contains(unwritable.output, "petbench: /proc/"));
    CHECK(petbench("pipeline" + small_scanner + few_frames + ">/dev/full").status == 74);
}
