package snapshot

import (
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Marks is what an object has on it of what this server writes there. Views do not
// hold it: nothing is judged by it.
type Marks struct {
	// Hash of the marks, by MarksHash.
	Hash uint64
	// Generation of the object.
	Generation int64
	// Others counts the conditions that are not ours.
	Others int
	// Going tells that the object is being deleted.
	Deleting bool
	// OptedOut tells that its marks are to stay as they are (api.LabelRefresh).
	OptedOut bool
}

// MarksOf returns the marks on an object, of its metadata and its status.
func MarksOf(o metav1.Object, conditions []metav1.Condition) Marks {
	m := Marks{
		Hash: MarksHash(o.GetAnnotations(), conditions), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, OptedOut: o.GetLabels()[api.LabelRefresh] == "false",
	}
	for i := range conditions {
		if !api.IsAffected(conditions[i].Type) {
			m.Others++
		}
	}
	return m
}

// seed is of this process: hashes leave it as little as what they are made of.
var seed = maphash.MakeSeed()

// MarksHash returns a hash of those of the annotations and the conditions that are
// marks of this server, in whatever order. An annotation that is empty and a
// condition that is not True are as good as none.
func MarksHash(annotations map[string]string, conditions []metav1.Condition) uint64 {
	var sum uint64 // of a set: the order of a map plays no part
	for name, text := range annotations {
		if text != "" && api.IsMark(name) {
			sum += hashOf(name, text)
		}
	}
	for i := range conditions {
		if c := &conditions[i]; c.Status == metav1.ConditionTrue && api.IsAffected(c.Type) {
			sum += hashOf(c.Type, c.Reason, c.Message, strconv.FormatInt(c.ObservedGeneration, 10))
		}
	}
	return sum
}

func hashOf(parts ...string) uint64 { return maphash.String(seed, strings.Join(parts, "\x00")) }

// Same reports whether two states of an object are the same in all that paths and
// policies on them hang on. Where nothing but marks or a status was written they
// are.
func Same(a, b Object) bool {
	switch a := a.(type) {
	case *gateway.Route:
		o, ok := b.(*gateway.Route)
		return ok && a.Same(o)
	case *policykind.Policy:
		o, ok := b.(*policykind.Policy)
		return ok && a.Same(o)
	default:
		return reflect.DeepEqual(a, b)
	}
}
