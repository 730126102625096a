// The benchmark suites: the options of each and the function that runs it. Figures that are compared are
// measured in one run and printed with their ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace petacq::bench {

/// What was measured is not as petacqd guarantees it. The figures have been printed.
class ExpectationFailed : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The UDP receiver against a bare recvmmsg loop, over loopback or veth pairs.
struct ReceiveSuite {
    std::vector<std::size_t> payloads{1472, 8972};
    double seconds = 1;
    unsigned pairs = 1;
    unsigned repetitions = 5;
    bool gso = true;
    bool gro = true;
    bool veth = false;
    std::size_t receive_buffer_bytes = std::size_t{64} << 20;
    std::size_t batch_bytes = std::size_t{1} << 20;
    std::size_t batch_count = 128;
};
void run(const ReceiveSuite& suite);

/// The translation of foreign frames (docs/reference/layout.md), on one core.
struct TranslateSuite {
    std::string layout = "config/examples/petsys-tofpet2.layout.json";
    double tick_ps = 5000;
    std::vector<std::size_t> payloads{1472, 8972};
    double seconds = 1;
    unsigned repetitions = 5;
};
void run(const TranslateSuite& suite);

/// The acquisition thread with made-up datagrams and a pipeline that takes no time.
struct AcquisitionSuite {
    std::size_t sources = 12;
    std::size_t sockets = 6;
    std::size_t datagrams_per_read = 44;  ///< what GRO gives for 1472 bytes
    std::uint32_t slice_frames = 1U << 20;
    double millions = 10;  ///< datagrams
    std::size_t batch_bytes = std::size_t{1} << 20;
    std::size_t batch_count = 256;
    int repetitions = 5;
};
void run(const AcquisitionSuite& suite);

/// Conversion, order, coincidences and the whole pipeline.
struct PipelineSuite {
    std::string backend = "cpu";
    std::string scanner;
    std::size_t frames = 0;              ///< 0: 8 Mi on the CPU, 1 Gi on the GPU
    std::size_t slice_frames = 0;        ///< 0: 262,144 on the CPU; 1, 4 and 16 Mi on the GPU
    std::size_t receivers = 1;           ///< GPU: side by side in memory
    std::vector<std::uint32_t> devices;  ///< GPU: numbers of those that share the work; empty: the first
    double rate = 50e6;
    double window_ns = 4;
    double delay_ns = 0;
    std::string delayeds = "shifted_group";
    std::string policy = "RemoveMultiples";
    std::string mode = "single";
    double nonlinearity = 0;
    std::uint32_t bins = 256;
    std::vector<std::uint32_t>
        threads;             ///< empty: 1 to the number of cores, doubling (GPU: half the cores, at most 8)
    bool processes = false;  ///< CPU: also as many independent processes of one thread
    bool spectra = false;    ///< also passes that count spectra, alternating
    double gammas = 0;       ///< the fraction of the frames; also passes that find triples, alternating
    double gamma_window_ns = 10;  ///< before and after a pair
    bool singles = false;         ///< only order the singles, and return them
    int repeat = 5;
};
void run(const PipelineSuite& suite);

/// The list-mode writer against plain writes by as many threads to as many files, and the checksum alone.
struct WriterSuite {
    std::string directory = ".";
    double gigabytes = 2;
    std::uint32_t block_bytes = 1U << 20;  ///< a multiple of 64
    std::uint32_t queue_blocks = 64;
    std::vector<std::uint32_t> files = {1, 2, 4, 8};  ///< one after the other
    bool direct = false;                              ///< also plain writes with O_DIRECT
    int rounds = 5;
};
void run(const WriterSuite& suite);

/// The exports of petlm against a plain copy of the same list-mode file.
struct ExportSuite {
    std::string directory = ".";
    std::string scanner;
    double millions = 20;
    int rounds = 3;
};
void run(const ExportSuite& suite);

/// The parts of petlm's quick-look image, on the CPU and with CUDA.
struct ImageSuite {
    std::string scanner;
    double millions = 5;
    std::vector<std::string> backends = {"cpu"};
    std::uint32_t threads = 0;  ///< 0: one per core
    std::uint32_t iterations = 3;
    std::uint32_t subsets = 8;
    double tof_fwhm_ps = 0;  ///< 0: without the time of flight
    double psf_mm = 0;
    double max_memory_gb = 4;
    int rounds = 3;
};
void run(const ImageSuite& suite);

/// petacqd --replay of a capture in the page cache against the pipeline with the same frames in memory.
struct ReplaySuite {
    std::string configuration;
    std::string capture;
    std::string directory = ".";
    int rounds = 5;
};
void run(const ReplaySuite& suite);

/// The cost of many status subscribers for the receive path of a real petacqd.
struct StatusLoadSuite {
    std::string scanner = "config/examples/small.scanner.json";
    unsigned subscribers = 100;
    unsigned http_clients = 4;
    double interval_s = 1;
    double seconds = 3;
    double rate = 20'000;  ///< datagrams per second
    unsigned repetitions = 5;
};
void run(const StatusLoadSuite& suite);

/// The highest rate without loss from UDP on loopback to list-mode, through a real petacqd.
struct LiveSuite {
    std::string scanner = "config/examples/mouse.scanner.json";
    std::string calibration;      ///< empty: made for the scanner
    std::string capture;          ///< whose frames to send; empty: simulated ones
    std::string directory = ".";  ///< where runs are written
    std::string petacqd;          ///< program; empty: beside petbench
    std::string patch;            ///< JSON merge patch of petacqd's configuration; empty: none
    std::string backend = "cpu";
    std::uint32_t threads = 0;  ///< of the CPU back-end; 0: the default of petacqd
    unsigned sockets = 4;
    unsigned senders = 0;  ///< 0: one for each socket
    std::size_t payload = 1472;
    std::size_t frames = std::size_t{256} << 10;  ///< simulated, in a pass; few enough for the cache
    double detector_rate = 0;  ///< frames per second of detector time; 0: those of host time
    double efficiency = 0.5;   ///< of the simulated crystals
    double window_ns = 4;
    double delay_ns = 0;    ///< 0: no delayeds
    bool raw = false;       ///< also a raw capture
    std::uint32_t tap = 0;  ///< a client of the live tap reads every `tap`-th coincidence; 0: none
    double from = 10e6;     ///< frames per second
    double to = 1e9;
    unsigned steps = 8;
    double rate = 0;  ///< one step at this rate; 0: search
    double seconds = 3;
    std::vector<double> overload;  ///< factors of the rate for which runs are overloaded; empty: none
    double overload_seconds = 10;
};
/// Throws ExpectationFailed if an overload broke what petacqd guarantees.
void run(const LiveSuite& suite);

/// The engines that sort singles on the GPU. Throws std::runtime_error when there is no usable GPU.
struct SortSuite {
    std::uint32_t least = 1U << 10;  ///< singles
    std::uint32_t most = 1U << 26;
    int bits = 36;
    int repeat = 11;
};
void run(const SortSuite& suite);

}  // namespace petacq::bench
