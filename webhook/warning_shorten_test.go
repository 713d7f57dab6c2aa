package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShortenWords(t *testing.T) {
	for name, c := range map[string]struct {
		line    string
		longest int
		want    string
	}{
		"a word alone is cut in its middle": {"infra/gateway-authentication", 15, "infra/g…ication"},
		"words that differ in their middle keep that": {
			"shop/toystore-blue-production loses to shop/toystore-green-production", 20,
			"shop/to…blue…duction loses to shop/to…green…uction",
		},
		"words that differ at their end keep that": {
			"rules.authentication.api-key of rules.authentication.sso", 20, "rules.authe…api-key of rules.authentic…sso",
		},
		"words that differ at their start keep that": {
			"blue.toystore.production green.toystore.production", 18, "blue…e.production green….production",
		},
		"groups that distinguish kinds": {
			"AuthPolicy.kuadrant.io AuthPolicy.kgateway.dev", 18, "AuthPo…uadrant.io AuthP…gateway.dev",
		},
		"the longer of two, one of which begins as the other": {
			"app/toystore-of-our-team app/toystore-of-our-team-canary", 20, "app/toysto…-our-team app/toystor…-canary",
		},
		"words that have little in common": {
			"team-alpha-production-west infra/edge-of-the-network", 18, "team-alph…ion-west infra/edg…-network",
		},
		"what differs is itself too long": {
			"a-0123456789012345678901234567890-z a-9876543210987654321098765432109-z", 18, "a-0123456…567890-z a-9876543…432109-z",
		},
		"text of several bytes a letter": {"éééééééééébéééééééééé ééééééééééçéééééééééé", 9, "ééé…b…ééé ééé…ç…ééé"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, shortenWords(c.line, c.longest))
		})
	}
}
