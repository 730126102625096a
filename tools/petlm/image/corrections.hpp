// What an image is corrected for, with the sentences that tell the user.
#pragma once

#include <memory>
#include <string>

#include "config/scanner.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/image/lines.hpp"
#include "tools/petlm/corrections/run_randoms.hpp"

namespace petacq::image {

/// Both corrections come from the seconds of a run directory. Without them the delayeds give the randoms, if
/// there are any, and nothing gives the pile-up.
class Corrections {
  public:
    /// `delayeds` must outlive it.
    Corrections(const petlm::ExportSource& source, const config::Scanner& scanner,
                const RandomsByModules& delayeds);
    Corrections(const Corrections&) = delete;
    Corrections& operator=(const Corrections&) = delete;

    /// Valid as long as this object.
    [[nodiscard]] const RandomsOfPair& randoms() const { return randoms_; }
    /// The factor that makes up for pairs lost to multiples; 1 if it is unknown.
    [[nodiscard]] double pile_up() const { return pile_up_; }
    [[nodiscard]] const std::string& randoms_sentence() const { return randoms_sentence_; }
    [[nodiscard]] const std::string& pile_up_sentence() const { return pile_up_sentence_; }

  private:
    void use_seconds();
    void use_delayeds(const petlm::ExportSource& source, const RandomsByModules& delayeds,
                      const std::string& why);

    std::unique_ptr<petlm::RunRandoms> of_run_;
    RandomsOfPair randoms_;
    double pile_up_ = 1;
    std::string randoms_sentence_;
    std::string pile_up_sentence_;
};

}  // namespace petacq::image
