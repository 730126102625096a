// The detector as the seconds of an earlier run show it: what the daemon measured then, measured again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/detector/detector_watch.hpp"
#include "daemon/seconds/meter.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/sums_reader.hpp"

namespace petacq::daemon {

/// One pass from the first second to the last.
class RecordedDetector {
  public:
    /// `directory`: of a run. Throws config::Error if its run.json or its seconds cannot be used.
    explicit RecordedDetector(const std::filesystem::path& directory);
    RecordedDetector(const RecordedDetector&) = delete;
    RecordedDetector& operator=(const RecordedDetector&) = delete;

    [[nodiscard]] const config::Scanner& scanner() const { return scanner_; }
    /// That of the run, with the rules by which its seconds were made.
    [[nodiscard]] const config::Configuration& configuration() const { return configuration_; }
    [[nodiscard]] std::uint64_t ticks_per_s() const { return ticks_per_s_; }
    /// Where its data begin, if that is known.
    [[nodiscard]] std::optional<std::uint64_t> start_ticks() const { return start_; }

    /// The next second; nullptr at the end of what can be read. Throws std::system_error.
    std::shared_ptr<const Second> next();

  private:
    [[nodiscard]] BoardReport report() const;

    config::Configuration configuration_;
    config::Scanner scanner_;
    std::optional<std::uint64_t> start_;
    std::uint64_t ticks_per_s_ = 0;
    std::optional<SecondsReader> reader_;
    std::optional<SumsReader> sums_;
    std::optional<SecondsMeter> meter_;
};

/// Throws config::Error, naming the directory of the recorded run, if it was not of this scanner, or not
/// taken with the same conditions on energies and coincidences.
void check_comparable(const std::filesystem::path& directory, const RecordedDetector& recorded,
                      const config::Configuration& configuration, const config::Scanner& scanner);

/// The start of an earlier run, to compare with. Throws config::Error as RecordedDetector and
/// check_comparable() do.
std::shared_ptr<const DetectorBaseline> load_reference(const std::filesystem::path& directory,
                                                       const config::Configuration& configuration,
                                                       const config::Scanner& scanner);

}  // namespace petacq::daemon
