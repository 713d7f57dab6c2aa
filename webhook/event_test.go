package webhook

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"overrule.dev/overrule/internal/guard"
)

// event is a recorded Event.
type event struct {
	about                        corev1.ObjectReference
	eventtype, reason, act, note string
}

// eventBuffer records Events.
type eventBuffer struct {
	mu     sync.Mutex
	events []event
}

func (p *eventBuffer) Eventf(about, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event{*about.(*corev1.ObjectReference), eventtype, reason, action, fmt.Sprintf(note, args...)})
}

func limitsRef(uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "kuadrant.io/v1", Kind: "RateLimitPolicy", Namespace: "app", Name: "toystore-limits", UID: uid}
}

func TestDenialRecordsEvent(t *testing.T) {
	limitsDenied := said(t, newTestServer(t, Options{}, cluster, gatewayLimits).validated(t, create(t, routeLimits(100))))
	dry := func(t *testing.T) *admissionv1.AdmissionRequest {
		r := create(t, routeLimits(100))
		r.DryRun = new(true)
		return r
	}
	for name, c := range map[string]struct {
		enforcement guard.Enforcement
		request     func(t *testing.T) *admissionv1.AdmissionRequest
		want        []event
	}{
		"of a create, which has no uid that anything will have": {
			request: func(t *testing.T) *admissionv1.AdmissionRequest {
				return create(t, strings.Replace(routeLimits(100), "{namespace: app", "{uid: u0, namespace: app", 1))
			},
			want: []event{{limitsRef(""), "Warning", "ConstraintViolated", "Admit", limitsDenied}},
		},
		"of an edit, at the object that stays": {
			request: func(t *testing.T) *admissionv1.AdmissionRequest {
				return update(t, strings.Replace(routeLimits(20), "{namespace: app", "{uid: u1, namespace: app", 1), routeLimits(100))
			},
			want: []event{{limitsRef("u1"), "Warning", "ConstraintViolated", "Admit", limitsDenied}},
		},
		"of a write that is only warned of": {
			enforcement: guard.EnforceWarn,
			request:     func(t *testing.T) *admissionv1.AdmissionRequest { return create(t, routeLimits(100)) },
			want:        []event{{limitsRef(""), "Warning", "ConstraintViolated", "Admit", "would be denied: " + limitsDenied}},
		},
		"of a write that is only audited": {
			enforcement: guard.EnforceAudit,
			request:     func(t *testing.T) *admissionv1.AdmissionRequest { return create(t, routeLimits(100)) },
			want:        []event{{limitsRef(""), "Warning", "ConstraintViolated", "Admit", "would be denied: " + limitsDenied}},
		},
		"not of a dry run":       {request: dry},
		"nor of one in audit":    {enforcement: guard.EnforceAudit, request: dry},
		"nor of what is allowed": {request: func(t *testing.T) *admissionv1.AdmissionRequest { return create(t, routeLimits(20)) }},
		"nor of what is not evaluated": {
			request: func(t *testing.T) *admissionv1.AdmissionRequest {
				return &admissionv1.AdmissionRequest{UID: uid, Kind: metav1.GroupVersionKind{Kind: "Pod"}, Operation: admissionv1.Create, Object: raw("{}")}
			},
		},
		"of a name that was generated": {
			request: func(t *testing.T) *admissionv1.AdmissionRequest {
				r := create(t, routeLimits(100))
				r.Name = "" // as the API server sends it; the object has its name
				return r
			},
			want: []event{{limitsRef(""), "Warning", "ConstraintViolated", "Admit", limitsDenied}},
		},
		"at the namespace of what cannot be read, and has no name": {
			request: func(*testing.T) *admissionv1.AdmissionRequest {
				return &admissionv1.AdmissionRequest{UID: uid, Kind: kindAuthPolicy(), Namespace: "app", Operation: admissionv1.Create, Object: raw(`"x"`)}
			},
			want: []event{{
				corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: "app", Name: "app"}, "Warning", "Invalid", "Admit",
				"object: decode AuthPolicy.kuadrant.io: json: cannot unmarshal string into Go value of type map[string]interface {}",
			}},
		},
		"nowhere, where there is not even a namespace": {
			request: func(*testing.T) *admissionv1.AdmissionRequest {
				return &admissionv1.AdmissionRequest{UID: uid, Kind: kindAuthPolicy(), Operation: admissionv1.Create, Object: raw(`"x"`)}
			},
		},
		"of a namespace, which is in none": {
			request: func(*testing.T) *admissionv1.AdmissionRequest {
				return &admissionv1.AdmissionRequest{
					UID: uid, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Namespace: "app", Name: "app",
					Operation: admissionv1.Delete, OldObject: raw(`{"metadata":{"uid":"u2","name":5}}`),
				}
			},
			want: []event{{
				corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "app", UID: "u2"}, "Warning", "Invalid", "Admit",
				"oldObject: decode Namespace: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &eventBuffer{}
			d := newTestServer(t, Options{Enforcement: c.enforcement, Events: p}, cluster, gatewayLimits)
			r := c.request(t)
			d.validated(t, r)
			d.mutated(t, r)
			assert.Equal(t, c.want, p.events)
		})
	}
}

func TestRetryRecordsNoEvent(t *testing.T) {
	for _, e := range []guard.Enforcement{guard.EnforceDeny, guard.EnforceWarn, guard.EnforceAudit} {
		p := &eventBuffer{}
		d := newTestServer(t, Options{Enforcement: e, Events: p}, cluster)
		d.recordDenial(create(t, routeLimits(1)), d.denyUndecided("Overloaded", overloadMessage))
		assert.Empty(t, p.events, e)
	}
}

func TestEventsAreRateLimited(t *testing.T) {
	p := &eventBuffer{}
	d := newTestServer(t, Options{Events: p}, cluster, gatewayLimits)
	d.events = flowcontrol.NewFakeNeverRateLimiter()
	said(t, d.validated(t, create(t, routeLimits(100))))
	assert.Empty(t, p.events)
	assert.Contains(t, d.log.String(), "no Event for a denial")

	for range 10 * eventBurst {
		newTestServer(t, Options{}).recordDenial(create(t, routeLimits(1)), deny("X", "x")) // without a recorder there is none
	}
}
