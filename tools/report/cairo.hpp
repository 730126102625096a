// Whether this program draws pictures.
#pragma once

namespace petacq::report {

/// What draws pictures, and whatever calls it, is compiled with cairo only: call it within `if constexpr`.
#ifdef PETACQ_WITH_CAIRO
inline constexpr bool with_cairo = true;
#else
inline constexpr bool with_cairo = false;
#endif
/// What a program without cairo says where it leaves pictures out.
inline constexpr const char* without_cairo = "no PNG pictures: this program was built without cairo";

}  // namespace petacq::report
