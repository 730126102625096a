#include "daemon/preflight/gamma_delay.hpp"

#include <fmt/core.h>

namespace petacq::daemon {

Findings check_gamma_delay(const config::Configuration& configuration, double tick_ps) {
    constexpr double longest_s = 1;
    if (!configuration.finds_triples() || !configuration.gammas->delay_ticks) return {};
    const double delay_s = static_cast<double>(*configuration.gammas->delay_ticks) * tick_ps * 1e-12;
    if (!(delay_s > longest_s)) return {};
    return {
        {Level::warning, "gammas.delay_ticks",
         fmt::format("delayed gammas come {:.4g} s after their pairs: the pairs of the last {:.4g} s of a "
                     "run have none, and activities change meanwhile",
                     delay_s, delay_s),
         "a delay of a few hundred ns to a few ms, longer than before_ticks and after_ticks together"}};
}

}  // namespace petacq::daemon
