#include "tools/petctl/terminal.hpp"

// Otherwise its macros would replace words like `timeout` and `move`.
#define NCURSES_NOMACROS 1
#include <curses.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace petacq::petctl {

namespace {

enum Pair : short { pair_good = 1, pair_warning = 2, pair_bad = 3 };

struct Look {
    attr_t attributes;
    short pair;
};
/// In the order of Style.
constexpr std::array looks{Look{A_NORMAL, 0},
                           Look{A_BOLD, 0},
                           Look{A_DIM, 0},
                           Look{A_NORMAL, pair_good},
                           Look{A_NORMAL, pair_warning},
                           Look{A_BOLD, pair_bad}};

constexpr std::array<std::pair<int, KeyPress>, 13> keys{{{'q', KeyPress::quit},
                                                         {'Q', KeyPress::quit},
                                                         {'s', KeyPress::sources},
                                                         {'m', KeyPress::modules},
                                                         {'r', KeyPress::reverse},
                                                         {KEY_LEFT, KeyPress::left},
                                                         {KEY_RIGHT, KeyPress::right},
                                                         {KEY_UP, KeyPress::up},
                                                         {KEY_DOWN, KeyPress::down},
                                                         {KEY_PPAGE, KeyPress::page_up},
                                                         {KEY_NPAGE, KeyPress::page_down},
                                                         {KEY_HOME, KeyPress::home},
                                                         {KEY_END, KeyPress::end}}};

KeyPress key_of(int code) {
    const auto* const found =
        std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.first == code; });
    return found == keys.end() ? KeyPress::other : found->second;
}

/// Terminals that understand the sequences of xterm for the title. The console of Linux does not.
bool has_title() {
    const char* const name = std::getenv("TERM");
    if (name == nullptr) return false;
    constexpr std::array<std::string_view, 8> known{"xterm", "rxvt",  "screen", "tmux",
                                                    "foot",  "kitty", "gnome",  "alacritty"};
    return std::any_of(known.begin(), known.end(),
                       [&](std::string_view one) { return std::string_view(name).starts_with(one); });
}

/// Of the terminal that newterm() has taken.
bool can_place_cursor() {
    const char* const sequence = ::tigetstr("cup");
    // ncurses returns -1 for a name that no terminal has.
    return sequence != nullptr && reinterpret_cast<std::intptr_t>(sequence) != -1;
}

void send(const std::string& sequence) {
    std::fputs(sequence.c_str(), stdout);
    std::fflush(stdout);
}

}  // namespace

Terminal::Terminal() {
    unicode_ = unicode_wanted();
    screen_ = ::newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) {
        throw OutputError("this terminal cannot show it (TERM is not known); use status --watch");
    }
    if (!can_place_cursor()) {
        ::endwin();
        ::delscreen(static_cast<SCREEN*>(screen_));
        throw OutputError("this terminal cannot show it (it cannot place the cursor); use status --watch");
    }
    ::cbreak();
    ::noecho();
    ::nodelay(stdscr, true);
    ::keypad(stdscr, true);
    ::set_escdelay(25);
    ::curs_set(0);
    if (::has_colors() && colour_wanted()) {
        ::start_color();
        ::use_default_colors();
        ::init_pair(pair_good, COLOR_GREEN, -1);
        ::init_pair(pair_warning, COLOR_YELLOW, -1);
        ::init_pair(pair_bad, COLOR_RED, -1);
    }
}

Terminal::~Terminal() {
    ::endwin();
    if (!title_.empty()) send("\x1b[23;2t");
    ::delscreen(static_cast<SCREEN*>(screen_));
}

std::size_t Terminal::width() const {
    return static_cast<std::size_t>(::getmaxx(stdscr));
}

std::size_t Terminal::height() const {
    return static_cast<std::size_t>(::getmaxy(stdscr));
}

void Terminal::show(const Lines& lines) {
    ::werase(stdscr);
    for (std::size_t y = 0; y < lines.size(); ++y) {
        ::wmove(stdscr, static_cast<int>(y), 0);
        std::size_t left = width();
        for (const Span& span : lines[y]) {
            const std::size_t bytes = bytes_of(span.text, left);
            left -= width_of(std::string_view(span.text).substr(0, bytes));
            const Look& look = looks.at(static_cast<std::size_t>(span.style));
            ::wattr_set(stdscr, look.attributes, ::has_colors() ? look.pair : short{0}, nullptr);
            ::waddnstr(stdscr, span.text.c_str(), static_cast<int>(bytes));
        }
    }
    ::wrefresh(stdscr);
}

void Terminal::title(const std::string& text) {
    if (text == title_ || !has_title()) return;
    send((title_.empty() ? "\x1b[22;2t\x1b]2;" : "\x1b]2;") + text + "\a");
    title_ = text;
}

bool Terminal::read_key(KeyPress& key) {
    const int code = ::wgetch(stdscr);
    if (code == ERR) return false;
    key = key_of(code);
    return true;
}

}  // namespace petacq::petctl
