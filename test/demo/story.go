package main

// story is what make demo plays, and what a newcomer reads first. The parts that
// a command's output must have are those that a reader would look for.
var story = []step{
	{
		say:     "The platform team's gateway in namespace infra, and an application team's route in namespace app.",
		command: "kubectl apply -f examples/demo/00-cluster.yaml",
		stdout:  []string{"gateway.gateway.networking.k8s.io/edge created", "httproute.gateway.networking.k8s.io/toystore created"},
	},
	{
		say:     "The platform team overrides: everyone's sso is theirs (merged into what others add), and a login limit over 50 is cut.",
		command: "kubectl apply -f examples/demo/10-gateway-policies.yaml",
		stdout:  []string{"authpolicy.kuadrant.io/gw-auth created", "ratelimitpolicy.kuadrant.io/gw-limits created"},
		stderr:  []string{"Warning: "},
	},
	{
		say:     "The application team adds a rule and an sso of its own. That is allowed, and they are told what has no effect.",
		command: "kubectl apply -f examples/demo/20-route-auth.yaml",
		stdout:  []string{"authpolicy.kuadrant.io/toystore-auth created"},
		stderr:  []string{"Warning: ", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "A login limit of 100 breaks the constraint: rejected before it is stored.",
		command: "kubectl apply -f examples/demo/30-route-limits-too-high.yaml",
		code:    1,
		stderr:  []string{"denied the request", "ConstraintViolated", "limits.login", "100", "infra/gw-limits", "r.limit > 50"},
	},
	{
		say:     "A dry run gets the same answer ...",
		command: "kubectl apply --dry-run=server -f examples/demo/30-route-limits-too-high.yaml",
		code:    1,
		stderr:  []string{"denied the request", "ConstraintViolated", "limits.login", "infra/gw-limits"},
	},
	{
		say:     "... and so does a diff.",
		command: "kubectl diff -f examples/demo/30-route-limits-too-high.yaml",
		code:    2,
		stderr:  []string{"denied the request", "ConstraintViolated", "limits.login", "infra/gw-limits"},
	},
	{
		say:     "Limits that comply are nobody's business.",
		command: "kubectl apply -f examples/demo/31-route-limits.yaml",
		stdout:  []string{"ratelimitpolicy.kuadrant.io/toystore-limits created"},
	},
	{
		say:     "An override cannot be unset from below: to do without the gateway's sso on /admin is rejected.",
		command: "kubectl apply -f examples/demo/21-admin-auth-unset.yaml",
		code:    1,
		stderr:  []string{"denied the request", "UnsetOverride", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "Sam may edit and delete the policies in infra and app, and may not override.",
		command: "kubectl apply -f examples/demo/01-rights.yaml",
		stdout:  []string{"role.rbac.authorization.k8s.io/policy-editor created"},
	},
	{
		say:     "So Sam cannot water the override down: API keys that are as good as the gateway's sso are rejected ...",
		command: "kubectl --as sam apply -f examples/demo/22-route-auth-api-key.yaml",
		code:    1,
		stderr:  []string{"denied the request", "OverrideWeakened", "rules.authentication.api-key", "rules.authentication.sso", "infra/gw-auth"},
	},
	{
		say:     "... nor take it away ...",
		command: "kubectl --as sam delete -n infra authpolicy gw-auth",
		code:    1,
		stderr:  []string{"denied the request", "OverrideRemoved", "rules.authentication.sso", "kubectl auth can-i override authpolicies.kuadrant.io/gw-auth -n infra"},
	},
	{
		say:     "... while an administrator could, and is told what that does.",
		command: "kubectl delete --dry-run=server -n infra authpolicy gw-auth",
		stdout:  []string{`authpolicy.kuadrant.io "gw-auth" deleted`, "(server dry run)"},
		stderr:  []string{"Warning: ", "would no longer", "on 2 paths", "effective policy of AuthPolicy changes on 2 paths in 1 namespace"},
	},
	{
		say:     "A diff of what is allowed shows just what was edited.",
		command: "kubectl diff -f examples/demo/32-route-limits-lower.yaml",
		code:    1,
		stdout:  []string{"- limit: 20", "- limit: 10"},
	},
	{
		say:     "What holds on the route in the end, and from which policy?",
		command: "kubectl overrule effective -n app httproute/toystore",
		stdout:  []string{"rules.authentication.sso", "infra/gw-auth", "rules.authorization.customers", "app/toystore-auth", "limits.login", "app/toystore-limits"},
	},
	{
		say:     "Why is the application team's sso not what holds?",
		command: "kubectl overrule explain -n app authpolicy/toystore-auth rules.authentication.sso",
		stdout:  []string{"rules.authentication.sso", "infra/gw-auth", "overrides"},
	},
	{
		say:     "The same engine judges files before anyone has a cluster: exit code 1 is a denial.",
		command: "kubectl overrule check -f examples/demo/30-route-limits-too-high.yaml --against examples/demo/00-cluster.yaml --against examples/demo/10-gateway-policies.yaml",
		code:    1,
		stdout:  []string{"ConstraintViolated", "limits.login", "infra/gw-limits"},
	},
}
