import type { Directive } from '../../plugin/directive.ts'
import { checkBlock } from './check.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { draftOptions, scanOptions } from './options.ts'
import { KuadrantService } from './service.ts'
import { SharedZones } from './shared-zones.ts'
import { Siblings } from './siblings.ts'
import { faultAt } from './source-fault.ts'

/** `kuadrant`: zones made of DNSRecords. */
export const kuadrant: Directive = {
  name: 'kuadrant',
  setup(c) {
    const siblings = Siblings.of(c.corefile)
    const draft = draftOptions(c.dispenser)
    siblings.addDraft(draft)
    // Before the scan, so that a bad property does not hide what is wrong with the manifests.
    let isScanned = false
    c.onCheck((warn) => {
      if (!isScanned && !draft.hasSource) return []
      return checkBlock(draft, siblings.drafts, warn).catch(faultAt(draft.position))
    })
    const options = scanOptions(c.dispenser, c.block, draft)
    isScanned = true
    const path = options.snapshot?.path
    if (path !== undefined && siblings.options.some((other) => other.snapshot?.path === path)) {
      throw c.dispenser.error(`snapshot ${path} is that of another block: name another file`)
    }
    if (siblings.probesOtherwise(options)) {
      throw c.dispenser.error('probe says otherwise than in another block with the same manifests')
    }
    const share = new SharedZones(c)
    c.addHandler((next) => new KuadrantHandler(next, share, options.fallthrough))
    const service = new KuadrantService(c, options, share)
    c.onReady(
      () => service.unreadyReason(),
      () => service.note(),
    )
    c.onStartup(() => service.start())
    c.onFinalShutdown(() => service.finish())
    c.onShutdown(() => service.stop())
  },
}
