import t from 'tap'
import { PageShell } from '../support/page-shell.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const PAGE = 'docs/how-to/egress-node.md'
const NEEDS = {
  ...needsRoot(),
  ...needs('bash', 'unshare', 'ip', 'nft', 'conntrack', 'dig', 'curl'),
}

t.setTimeout(600_000)

t.test(`${PAGE}: the tour does what it shows`, NEEDS, async (t) => {
  await PageShell.run(t, PAGE, temporaryDirectory(t))
})
