package main

// story is the list of commands that make demo runs and shows to new users. The
// output of each must contain the parts that a reader would look for.
var story = []step{
	{
		say:     "The platform team's two gateways in namespace infra, and an application team's route on each, in namespace app. The gateway internal requires tokens and sso, by policies that are no overrides.",
		command: "kubectl apply -f examples/demo/00-cluster.yaml -f examples/demo/02-internal-gateway.yaml",
		stdout:  []string{"gateway.gateway.networking.k8s.io/edge created", "httproute.gateway.networking.k8s.io/toystore created", "httproute.gateway.networking.k8s.io/reports created"},
		stderr:  []string{"Warning: "},
	},
	{
		say:     "The application team adds CORS and a rule to its route there: each policy takes the gateway's authentication away, and the writer is told so.",
		command: "kubectl apply -f examples/demo/03-reports-policies.yaml",
		stdout:  []string{"securitypolicy.gateway.envoyproxy.io/reports-cors created", "authpolicy.kuadrant.io/reports-auth created"},
		stderr: []string{
			"Warning: HTTPRoute app/reports loses jwt of SecurityPolicy infra/internal-tokens on 1 path: a SecurityPolicy on a route replaces the gateway's as a whole; set spec.mergeType to keep it",
			"Warning: HTTPRoute app/reports loses authentication of AuthPolicy infra/internal-auth on 1 path: its rules are atomic",
		},
	},
	{
		say:     "The platform team overrides sso for all routes, merged with the rules of other policies, and limits all requests. A constraint caps the login limit at 50, whichever policy sets it.",
		command: "kubectl apply -f examples/demo/10-gateway-policies.yaml",
		stdout:  []string{"authpolicy.kuadrant.io/gw-auth created", "ratelimitpolicy.kuadrant.io/gw-limits created", "policyconstraint.overrule.dev/login-limit created"},
		stderr:  []string{"Warning: "},
	},
	{
		say:     "The application team adds a rule and its own sso. The write is allowed, with a warning about the rule that has no effect.",
		command: "kubectl apply -f examples/demo/20-route-auth.yaml",
		stdout:  []string{"authpolicy.kuadrant.io/toystore-auth created"},
		stderr:  []string{"Warning: ", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "A login limit of 100 violates the constraint: the write is denied.",
		command: "kubectl apply -f examples/demo/30-route-limits-too-high.yaml",
		code:    1,
		stderr:  []string{"denied the request", "RequirementUnmet", "limits.login.rates[0].limit", "PolicyConstraint infra/login-limit", "50"},
	},
	{
		say:     "A dry run is denied for the same reason ...",
		command: "kubectl apply --dry-run=server -f examples/demo/30-route-limits-too-high.yaml",
		code:    1,
		stderr:  []string{"denied the request", "RequirementUnmet", "limits.login.rates[0].limit", "infra/login-limit"},
	},
	{
		say:     "... and so is a diff.",
		command: "kubectl diff -f examples/demo/30-route-limits-too-high.yaml",
		code:    2,
		stderr:  []string{"denied the request", "RequirementUnmet", "limits.login.rates[0].limit", "infra/login-limit"},
	},
	{
		say:     "Limits that satisfy the constraint are allowed. They are merged with the limit of the gateway.",
		command: "kubectl apply -f examples/demo/31-route-limits.yaml",
		stdout:  []string{"ratelimitpolicy.kuadrant.io/toystore-limits created"},
	},
	{
		say:     "A route's policy cannot unset an override: removing the gateway's sso from /admin is denied.",
		command: "kubectl apply -f examples/demo/21-admin-auth-unset.yaml",
		code:    1,
		stderr:  []string{"denied the request", "UnsetOverride", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "Sam is allowed to edit and delete the policies in infra and app, but does not have the verb override.",
		command: "kubectl apply -f examples/demo/01-rights.yaml",
		stdout:  []string{"role.rbac.authorization.k8s.io/policy-editor created"},
	},
	{
		say:     "So Sam cannot weaken the override: API keys as an alternative to the gateway's sso are denied ...",
		command: "kubectl --as sam apply -f examples/demo/22-route-auth-api-key.yaml",
		code:    1,
		stderr:  []string{"denied the request", "OverrideWeakened", "rules.authentication.api-key", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "... and Sam cannot remove it ...",
		command: "kubectl --as sam delete -n infra authpolicy gw-auth",
		code:    1,
		stderr:  []string{"denied the request", "OverrideRemoved", "rules.authentication.sso", "kubectl auth can-i override authpolicies.kuadrant.io/gw-auth -n infra"},
	},
	{
		say:     "... while an administrator can, and gets a warning about the effect.",
		command: "kubectl delete --dry-run=server -n infra authpolicy gw-auth",
		stdout:  []string{`authpolicy.kuadrant.io "gw-auth" deleted`, "(server dry run)"},
		stderr:  []string{"Warning: ", "would no longer", "on 2 paths"},
	},
	{
		say:     "A diff of an allowed change shows only the edited fields.",
		command: "kubectl diff -f examples/demo/32-route-limits-lower.yaml",
		code:    1,
		stdout:  []string{"- limit: 20", "- limit: 10"},
	},
	{
		say:     "The effective policies of the route, and the policy that sets each value.",
		command: "kubectl overrule effective -n app httproute/toystore",
		stdout:  []string{"rules.authentication.sso", "infra/gw-auth", "rules.authorization.customers", "app/toystore-auth", "limits.login", "app/toystore-limits", "limits.total", "infra/gw-limits"},
	},
	{
		say:     "Why does the application team's sso have no effect?",
		command: "kubectl overrule explain -n app authpolicy/toystore-auth rules.authentication.sso",
		stdout:  []string{"rules.authentication.sso", "infra/gw-auth", "overrides"},
	},
	{
		say:     "The same engine evaluates files without a cluster: exit code 1 is a denial.",
		command: "kubectl overrule check -f examples/demo/30-route-limits-too-high.yaml --against examples/crds --against examples/demo/00-cluster.yaml --against examples/demo/10-gateway-policies.yaml",
		code:    1,
		stdout:  []string{"RequirementUnmet", "limits.login.rates[0].limit", "infra/login-limit"},
	},
}
