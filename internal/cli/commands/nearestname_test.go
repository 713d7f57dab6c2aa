package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// namesBase has a Gateway, a route with two named rules and a policy with one rule.
const namesBase = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: infra}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: eg
  listeners:
    - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
    - {name: https, port: 443, protocol: HTTPS, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: cart}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: items}, {name: checkout, matches: [{path: {value: /checkout}}]}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {namespace: shop, name: login}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}], cors: {allowOrigins: ["*"]}}
`

// A name that does not exist comes with the one that was probably meant, or with the namespace
// that has it, in every command; without either, nothing is guessed.
func TestNearestNames(t *testing.T) {
	base := write(t, "base.yaml", namesBase)
	for command, c := range map[string]struct {
		code int
		want string // the whole line, or its beginning if it ends with …
	}{
		"effective -n shop httproute/carts":                       {exitNegative, "error: HTTPRoute shop/carts not found: did you mean cart?"},
		"explain -n shop httproute/carts":                         {exitNegative, "error: HTTPRoute shop/carts not found: did you mean cart?"},
		"outcome -n shop securitypolicy/logn":                     {exitNegative, "error: SecurityPolicy shop/logn not found: did you mean login?"},
		"reach -n shop securitypolicy/logn":                       {exitNegative, "error: SecurityPolicy shop/logn not found: did you mean login?"},
		"reach -n shop --affecting httproute/carts":               {exitNegative, "error: HTTPRoute shop/carts not found: did you mean cart?"},
		"violations -n shop httproute/carts":                      {exitNegative, "error: HTTPRoute shop/carts not found: did you mean cart?"},
		"graph -n shop httproute/carts":                           {exitNegative, "error: HTTPRoute shop/carts not found: did you mean cart?"},
		"effective ns/shp":                                        {exitNegative, "error: Namespace shp not found: did you mean shop?"},
		"effective -A httproute/carts":                            {exitNegative, "error: HTTPRoute carts not found: did you mean cart?"},
		"explain -n shop httproute/cart coors":                    {exitNegative, "error: rule coors not found on the paths of HTTPRoute shop/cart: did you mean cors?"},
		"explain -n shop httproute/cart cors.alowOrigins":         {exitNegative, "error: rule cors.alowOrigins not found on the paths of HTTPRoute shop/cart: did you mean cors.allowOrigins?"},
		"reach -n shop securitypolicy/login coors":                {exitNegative, "error: rule coors not found in SecurityPolicy shop/login: did you mean cors?"},
		"reach -n infra --affecting gateway/edge --section htp":   {exitNegative, "error: section htp of Gateway infra/edge not found: did you mean http?"},
		"reach -n shop --affecting httproute/cart --section item": {exitNegative, "error: section item of HTTPRoute shop/cart not found: did you mean items?"},
		"effective -n shop httproutee/cart":                       {exitError, `error: unknown kind "httproutee" (did you mean httproute?): must be one of …`},
		"explain -n shop htproute/cart":                           {exitError, `error: unknown kind "htproute" (did you mean httproute?): must be one of …`},
		"outcome -n shop securitypolcy/login":                     {exitError, `error: unknown kind "securitypolcy" (did you mean securitypolicy?): must be one of …`},
		"reach -n shop securitypolcy/login":                       {exitError, `error: unknown kind "securitypolcy" (did you mean securitypolicy?): must be one of …`},
		"effective -n shop --kind SecurityPolcy":                  {exitError, `error: invalid --kind: unknown kind "SecurityPolcy" (did you mean securitypolicy?): must be one of …`},
		"effective -n shpo":                                       {exitOK, "warning: namespace shpo not found: did you mean shop?"},
		"outcome -n shpo":                                         {exitOK, "warning: namespace shpo not found: did you mean shop?"},
		"violations -n shpo":                                      {exitOK, "warning: namespace shpo not found: did you mean shop?"},

		// the name exists in another namespace
		"effective -n shop gateway/edge":         {exitNegative, "error: Gateway shop/edge not found, but exists in namespace infra: use -n to select a namespace or -A for all"},
		"explain -n shpo httproute/cart":         {exitNegative, "error: HTTPRoute shpo/cart not found, but exists in namespace shop: use -n to select a namespace or -A for all"},
		"outcome -n infra securitypolicy/login":  {exitNegative, "error: SecurityPolicy infra/login not found, but exists in namespace shop: use -n to select a namespace or -A for all"},
		"reach -n infra securitypolicy/login":    {exitNegative, "error: SecurityPolicy infra/login not found, but exists in namespace shop: use -n to select a namespace or -A for all"},
		"reach -n shop --affecting gateway/edge": {exitNegative, "error: Gateway shop/edge not found, but exists in namespace infra: use -n to select a namespace or -A for all"},

		// nothing is near
		"effective -n shop httproute/orders":                     {exitNegative, "error: HTTPRoute shop/orders not found"},
		"explain -n shop httproute/orders":                       {exitNegative, "error: HTTPRoute shop/orders not found"},
		"outcome -n shop securitypolicy/cors":                    {exitNegative, "error: SecurityPolicy shop/cors not found"},
		"reach -n shop securitypolicy/cors":                      {exitNegative, "error: SecurityPolicy shop/cors not found"},
		"violations -n shop httproute/orders":                    {exitNegative, "error: HTTPRoute shop/orders not found"},
		"explain -n shop httproute/cart jwt":                     {exitNegative, "error: rule jwt not found on the paths of HTTPRoute shop/cart"},
		"reach -n shop securitypolicy/login jwt":                 {exitNegative, "error: rule jwt not found in SecurityPolicy shop/login"},
		"reach -n infra --affecting gateway/edge --section grpc": {exitNegative, "error: section grpc of Gateway infra/edge not found"},
		"effective -n shop widget/cart":                          {exitError, `error: unknown kind "widget": must be one of …`},
		"effective -n payments":                                  {exitOK, "no effective policies found"},
	} {
		t.Run(command, func(t *testing.T) {
			got := run(t, "", append(strings.Fields(command), "-f", base)...)
			assert.Equal(t, c.code, got.code)
			lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
			if begin, ok := strings.CutSuffix(c.want, "…"); ok {
				assert.True(t, strings.HasPrefix(lines[0], begin), lines[0])
			} else {
				assert.Equal(t, c.want, lines[0])
			}
		})
	}
}
