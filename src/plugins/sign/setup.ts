import { InputError } from '../../base/errors.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { Directive } from '../../plugin/directive.ts'
import { scanConfig } from './config.ts'
import type { ZoneFileSigner } from './zone-file-signer.ts'

/** How often the files are checked. */
const CHECK_MS = 60_000

/** `sign DBFILE [ZONES...] { key file KEY... | directory DIR }`: writes signed zone files. */
export const sign: Directive = {
  name: 'sign',
  setup: (c) => {
    const configs = scanConfig(c)
    let signers: readonly ZoneFileSigner[] = []
    let stopTicks = (): void => {}
    let isStopped = false
    const check = async ({ isOffline, read, warn }: CheckReport): Promise<InputError[]> => {
      const { checkZoneFile } = await import('../../authority/file-zone.ts')
      const { readKeys } = await import('./keys.ts')
      const faults: InputError[] = []
      for (const config of configs) {
        const { path, position, zone } = config
        const options = { isUnsigned: false, isWhole: true }
        const report = { warn, read, isOffline, foresee: () => {} }
        faults.push(...checkZoneFile(path, zone, options, report))
        if (isOffline) continue
        try {
          const { warnings } = await readKeys(config, c)
          for (const warning of warnings) warn(new InputError(position, warning))
        } catch (error) {
          if (!(error instanceof InputError)) throw error
          faults.push(error)
        }
      }
      return faults
    }
    const problems = (): ProblemGroup[] => {
      const found = signers.flatMap(({ problem }) => problem ?? [])
      const of = `sign ${placeOf(c.block)}`
      return [{ kind: 'zone-file', of, count: found.length, problems: found }]
    }
    return {
      check,
      problems,
      start: async () => {
        const { ZoneFileSigner } = await import('./zone-file-signer.ts')
        signers = configs.map((config) => new ZoneFileSigner(config, c))
        for (const signer of signers) await signer.start()
        if (isStopped) return
        const guarded = guarding(c.log, 'Signing zone files')
        const update = async (): Promise<void> => {
          for (const signer of signers) await signer.update()
        }
        // A large zone takes minutes.
        void guarded(update)
        stopTicks = c.timers.every(CHECK_MS, () => void guarded(update))
      },
      stop: () => {
        isStopped = true
        stopTicks()
        for (const signer of signers) signer.stop()
      },
    }
  },
}
