// The systemd journal: whether stderr leads there, and messages with fields.
#pragma once

#include <string_view>

namespace petacq::daemon {

/// Whether `descriptor` leads to the journal, as $JOURNAL_STREAM says. Each line may then start with its
/// priority, such as "<4>".
bool is_journal_stream(int descriptor);

/// Separates the text of a message from its fields, and the fields from one another.
inline constexpr char journal_separator = '\x1f';

/// Sends one message: its text, then any number of journal_separator and NAME=value. `priority` is that of
/// syslog(3). Returns false on failure, which a build without libsystemd always does. Waits while the journal
/// accepts nothing, so only a thread without other duties may call it.
bool send_to_journal(int priority, std::string_view message);

}  // namespace petacq::daemon
