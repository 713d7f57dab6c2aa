package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

func TestPairListeners(t *testing.T) {
	g, set := &gateway.Gateway{Namespace: "infra", Name: "g"}, &gateway.ListenerSet{Namespace: "app", Name: "s"}
	own := func(name string, port int32, hostname, protocol string) gateway.ListenerMatch {
		return gateway.ListenerMatch{Gateway: g, Listener: &gateway.Listener{Name: name, Port: port, Hostname: hostname, Protocol: protocol}}
	}
	ofSet := func(l gateway.ListenerMatch) gateway.ListenerMatch {
		l.Set = set
		return l
	}
	web, alt := own("web", 80, "", "HTTP"), own("alt", 81, "", "HTTP")
	for name, c := range map[string]struct {
		before, after []gateway.ListenerMatch
		want          []int // nil: by name
	}{
		"nothing changed":                         {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{web, alt}, nil},
		"in another order":                        {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{alt, web}, nil},
		"one is added, one removed":               {[]gateway.ListenerMatch{web}, []gateway.ListenerMatch{alt}, nil},
		"one is renamed":                          {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{own("new", 80, "", "HTTP"), alt}, []int{0, 1}},
		"two swap their ports":                    {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{own("web", 81, "", "HTTP"), own("alt", 80, "", "HTTP")}, []int{1, 0}},
		"one goes to a free port":                 {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{own("web", 90, "", "HTTP"), alt}, nil},
		"one goes to the port of one that goes":   {[]gateway.ListenerMatch{web, alt}, []gateway.ListenerMatch{own("web", 81, "", "HTTP")}, []int{1}},
		"the other protocol is another port":      {[]gateway.ListenerMatch{web}, []gateway.ListenerMatch{own("new", 80, "", "UDP")}, nil},
		"renamed, for another hostname":           {[]gateway.ListenerMatch{web}, []gateway.ListenerMatch{own("new", 80, "x.example", "HTTP")}, nil},
		"the gateway's own becomes that of a set": {[]gateway.ListenerMatch{web}, []gateway.ListenerMatch{ofSet(web)}, []int{0}},
		"of two that conflict, by name":           {[]gateway.ListenerMatch{web, own("too", 80, "", "HTTP")}, []gateway.ListenerMatch{own("too", 80, "", "HTTP"), own("new", 80, "", "HTTP")}, []int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pairs := gateway.PairListeners(c.before, c.after)
			assert.Equal(t, c.want == nil, pairs == nil)
			for a, b := range c.want {
				assert.Same(t, c.before[b].Listener, pairs[c.after[a].Listener].Listener)
			}
		})
	}
}
