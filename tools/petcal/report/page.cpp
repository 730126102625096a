#include "tools/petcal/report/page.hpp"

#include <string_view>

#include "daemon/system/file.hpp"
#include "tools/html/escaped.hpp"

namespace petacq::petcal {

namespace {

constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1f2933; --muted: #52606d; --line: #d5dbe1; --bad: #a51d1d; --curve: #1f5fa8; --other: #c2570c; }
@media (prefers-color-scheme: dark) {
  :root { --back: #171c22; --text: #e6eaee; --muted: #a3afba; --line: #323b45; --bad: #ff8f87; --curve: #6fb1f5; --other: #f2994a; }
}
body { margin: 0 auto; padding: 1rem; max-width: 82rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.muted, figcaption { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { font-size: 1.15rem; margin: .5rem 0; }
.units { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); align-items: start; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; box-sizing: border-box; }
figcaption { font-size: .85rem; margin-top: .2rem; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { border-top: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
image { image-rendering: pixelated; }
.curve { fill: none; stroke: var(--curve); stroke-width: 1; vector-effect: non-scaling-stroke; }
.other { fill: none; stroke: var(--other); stroke-width: 1; vector-effect: non-scaling-stroke; }
.axis { stroke: var(--line); vector-effect: non-scaling-stroke; }
svg text { fill: var(--muted); font-size: 11px; }
)";

}  // namespace

void write_page(const std::filesystem::path& file, const std::string& title, const std::string& body) {
    const std::string page =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
        escaped(title) + "</title>\n<style>" + std::string(page_style) + "</style>\n</head>\n<body>\n<h1>" +
        escaped(title) + "</h1>\n" + body + "</body>\n</html>\n";
    daemon::replace_file(file, page);
}

}  // namespace petacq::petcal
