// The journal of systemd: whether stderr goes there, and messages with fields.
#pragma once

#include <string_view>

namespace petacq::daemon {

/// Whether what is written to `descriptor` goes to the journal: $JOURNAL_STREAM names it. Each line may then
/// begin with its priority, as "<4>".
bool is_journal_stream(int descriptor);

/// Between the text of a message and its fields, and between these.
inline constexpr char journal_separator = '\x1f';

/// Sends one message: its text, then any number of journal_separator and NAME=value. `priority` is syslog's.
/// False when it could not be sent, which is always so in a build without libsystemd. Waits while the journal
/// takes nothing: not for a thread that has other things to do.
bool send_to_journal(int priority, std::string_view message);

}  // namespace petacq::daemon
