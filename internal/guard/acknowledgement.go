package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/utils/dump"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// acknowledgement is what the annotation of a write says, HASH-PATHS. The number is the
// writer's: others may create routes between the denial and the next try.
type acknowledgement struct {
	wanted  string
	allowed int    // paths
	why     string // that may not be enough
}

// acknowledgement returns the acknowledgement of the write, and the one that it needs.
func (ev *evaluation) acknowledgement() acknowledgement {
	most := ev.blast.limitedPaths()
	if ev.ownerBlast != nil {
		most = max(most, ev.ownerBlast.limitedPaths())
	}
	hash := ev.change.hash()
	out := acknowledgement{wanted: fmt.Sprintf("%s-%d", hash, most)}
	of, number, _ := strings.Cut(ev.change.Acknowledged, "-")
	switch paths, err := strconv.Atoi(number); {
	case ev.change.Acknowledged == "":
	case err != nil || of != hash:
		out.why = fmt.Sprintf("; acknowledgement %s does not match this change", ev.change.Acknowledged)
	default:
		out.allowed, out.why = paths, fmt.Sprintf("; the acknowledgement is for %s", api.Plural(paths, "path"))
	}
	return out
}

// hash returns a hash of what is written or deleted, of nothing else: no other object can
// make an acknowledgement invalid. The name is left out where it may be generated.
func (c Change) hash() string {
	ref := c.Object().Ref()
	if c.Operation == Create {
		ref.Name = ""
	}
	h := sha256.New()
	fmt.Fprintln(h, c.Operation, ref)
	if c.Owner != "" {
		fmt.Fprintln(h, c.Owner)
	}
	writeContent(h, c.Object())
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeContent writes what effective policies may depend on in an object, with the defaults
// of the API server, without its name and age.
func writeContent(w io.Writer, o snapshot.Object) {
	switch o := o.(type) {
	case *policykind.Policy:
		fmt.Fprintln(w, dump.ForHash(o.Targets), o.Unset)
		for _, b := range o.Blocks {
			fmt.Fprintln(w, b.Block, b.Strategy, b.When)
			for _, r := range b.Rules {
				fmt.Fprint(w, r.Key, " ")
				writeJSON(w, r.Value)
			}
		}
	case *gateway.Route:
		spec, _ := o.Spec().(map[string]any)
		fmt.Fprintln(w, dump.ForHash([]any{o.Labels, o.Annotations, o.Hostnames, o.Parents, spec["rules"]}))
	case *gateway.Gateway:
		content := *o
		content.Name = ""
		fmt.Fprintln(w, dump.ForHash(content))
	case *gateway.ListenerSet:
		content := *o
		content.Name, content.Created = "", 0
		fmt.Fprintln(w, dump.ForHash(content))
	case *policykind.Profile:
		writeJSON(w, o.Spec)
	case *policykind.Definition:
		writeJSON(w, o.Spec)
	case *gateway.Class, *gateway.Namespace, *gateway.Service, *gateway.Grant:
		fmt.Fprintln(w, dump.ForHash(o))
	}
}

// writeJSON writes the JSON of a value that was decoded from some.
func writeJSON(w io.Writer, value any) {
	data, _ := json.Marshal(value)
	fmt.Fprintf(w, "%s\n", data)
}
