// Go modules with the definitions and test cases of others; see ../upstream-crds.test.ts.
module sextant/test/cluster/oracles

go 1.25.0

require github.com/openshift/api v0.0.0-20251015095338-264e80a2b6e7
