//go:build long

package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// translator is a running process of test/peers/envoygateway.
type translator struct {
	in  *json.Encoder
	out *json.Decoder
}

// startTranslator builds and starts Envoy Gateway's translator.
func startTranslator(t *testing.T) *translator {
	t.Helper()
	program := filepath.Join(t.TempDir(), "envoygateway")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "envoygateway", "-ldflags=-s -w", "-o", program, ".")
	build.Stderr = os.Stderr
	require.NoError(t, build.Run())
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program) // it ends with its input, in the cleanup
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait())
	})
	return &translator{in: json.NewEncoder(in), out: json.NewDecoder(bufio.NewReader(out))}
}

// translation is what the translator makes of a world.
type translation struct {
	world // the objects with their status

	listeners map[listener]*translated
}

// listener identifies a listener of a Gateway or ListenerSet.
type listener struct{ kind, namespace, name, section string }

func (l listener) String() string { return l.namespace + "/" + l.name + "#" + l.section }

// translated is the translation of a listener.
type translated struct {
	settings object
	routes   map[string]object
}

// translate translates a world.
func (p *translator) translate(t *testing.T, w world) *translation {
	t.Helper()
	require.NoError(t, p.in.Encode(w))
	out := &translation{listeners: map[listener]*translated{}}
	require.NoError(t, p.out.Decode(&out.world), "the translator ended")
	for _, ir := range at(object(out.world), "xdsIR") {
		for _, protocol := range []string{"http", "tcp", "udp"} {
			for _, l := range items(ir.(object), protocol) { //nolint:forcetypeassert // the form of the result
				out.add(l)
			}
		}
	}
	return out
}

func (tr *translation) add(l object) {
	// gateway namespace/gateway/listener, or gateway namespace/gateway/namespace/set/listener
	name := strings.Split(text(l, "name"), "/")
	on := listener{"Gateway", name[0], name[1], name[len(name)-1]}
	if len(name) == 5 {
		on.kind, on.namespace, on.name = "ListenerSet", name[2], name[3]
	}
	to := &translated{settings: l, routes: map[string]object{}}
	for _, r := range items(l, "routes") {
		to.routes[text(r, "name")] = r
	}
	if r, ok := l["route"].(object); ok {
		to.routes[text(r, "name")] = r
	}
	delete(l, "routes")
	delete(l, "route")
	tr.listeners[on] = to
}

// policyState is what an implementation says of a policy.
type policyState struct{ accepted, conflicted, overridden, merged bool }

// policyStates returns what the conditions of the policies of a list say. A policy without
// conditions is missing: no gateway of the implementation has anything to do with it.
func (tr *translation) policyStates(list string) map[string]policyState {
	out := map[string]policyState{}
	for _, p := range tr.list(list) {
		var s policyState
		conditions := 0
		for _, a := range items(at(p, "status"), "ancestors") {
			for _, c := range items(a, "conditions") {
				conditions++
				is := text(c, "type") + " " + text(c, "status")
				s.accepted = s.accepted || is == "Accepted True"
				s.conflicted = s.conflicted || is == "Accepted False" && text(c, "reason") == "Conflicted"
				s.overridden = s.overridden || is == "Overridden True"
				s.merged = s.merged || is == "Merged True"
			}
		}
		if conditions > 0 {
			out[namespaceOf(p)+"/"+nameOf(p)] = s
		}
	}
	return out
}
