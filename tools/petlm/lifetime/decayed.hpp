// An exponential decay as a detector of finite resolution sees it.
#pragma once

namespace petacq::lifetime {

/// The share of an exponential decay of this lifetime, convolved with a Gaussian, that lies below `t`. All in
/// the same unit; sigma and the lifetime above 0.
double decayed_before(double t, double lifetime, double sigma);

}  // namespace petacq::lifetime
