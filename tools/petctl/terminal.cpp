#include "tools/petctl/terminal.hpp"

// Otherwise its macros would replace words like `timeout` and `move`.
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <langinfo.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace petacq::petctl {

namespace {

enum Pair : short { pair_good = 1, pair_warning = 2, pair_bad = 3 };

attr_t attributes_of(Style style) {
    switch (style) {
        case Style::title:
            return A_BOLD;
        case Style::faint:
            return A_DIM;
        case Style::bad:
            return A_BOLD;
        default:
            return A_NORMAL;
    }
}

short pair_of(Style style) {
    switch (style) {
        case Style::good:
            return pair_good;
        case Style::warning:
            return pair_warning;
        case Style::bad:
            return pair_bad;
        default:
            return 0;
    }
}

/// The bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
        const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
        if (begins && columns-- == 0) break;
    }
    return i;
}

Key key_of(int code) {
    switch (code) {
        case 'q':
        case 'Q':
            return Key::quit;
        case 's':
            return Key::sources;
        case 'm':
            return Key::modules;
        case 'r':
            return Key::reverse;
        case KEY_LEFT:
            return Key::left;
        case KEY_RIGHT:
            return Key::right;
        case KEY_UP:
            return Key::up;
        case KEY_DOWN:
            return Key::down;
        case KEY_PPAGE:
            return Key::page_up;
        case KEY_NPAGE:
            return Key::page_down;
        case KEY_HOME:
            return Key::home;
        case KEY_END:
            return Key::end;
        default:
            return Key::other;
    }
}

}  // namespace

Terminal::Terminal() {
    std::setlocale(LC_CTYPE, "");
    unicode_ = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
    screen_ = ::newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) {
        throw OutputError("this terminal cannot show it (TERM is not known); use status --watch");
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
            ::wattr_set(stdscr, attributes_of(span.style), ::has_colors() ? pair_of(span.style) : short{0},
                        nullptr);
            ::waddnstr(stdscr, span.text.c_str(), static_cast<int>(bytes));
        }
    }
    ::wrefresh(stdscr);
}

bool Terminal::read_key(Key& key) {
    const int code = ::wgetch(stdscr);
    if (code == ERR) return false;
    key = key_of(code);
    return true;
}

}  // namespace petacq::petctl
