# What the tests of completion share: `completion_site FOLDER_OF_PROGRAMS` makes a folder with files and programs, goes
# there, and starts a daemon that knows two runs. Its control socket is "control", another one's "elsewhere".
completion_site() {
    folder=$(mktemp -d)
    trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
    cd "$folder" || exit 1
    mkdir bin other.d
    touch data.plm other.d/x "two words.json"
    for program in petacqd petctl petsim petlm petcal petbench; do ln -s "$1/$program" bin/; done
    PATH=$folder/bin:$PATH
    export PATH PETACQ_SOCKET=$folder/sockets/control
    mkdir sockets
    python3 - sockets <<'END' &
import json, os, selectors, socket, sys
chosen = selectors.DefaultSelector()
for name, prefix in (("control", ""), ("elsewhere", "else")):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(sys.argv[1], name))
    listener.listen()
    chosen.register(listener, selectors.EVENT_READ, prefix)
open(os.path.join(sys.argv[1], "ready"), "w").close()
while True:
    for key, _ in chosen.select():
        with key.fileobj.accept()[0] as client, client.makefile("rw") as lines:
            for line in lines:
                runs = [{"run": key.data + run} for run in ("mouse-1", "rat-2")]
                answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"runs": runs, "earlier": 0}}
                print(json.dumps(answer), file=lines, flush=True)
END
    server=$!
    until [ -e sockets/ready ]; do kill -0 "$server" || exit 1; sleep 0.05; done
}
