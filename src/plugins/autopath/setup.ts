import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { InputError, type Position } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { CheckHook, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { SEARCH_PATHS, type SearchPaths } from '../../plugin/search-paths.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { Autopath } from './autopath.ts'
import { OnePath } from './one-path.ts'

interface Options {
  zones: ZoneSet
  /** Absolute path of the file; '' = `provider`. */
  file: string
  /** Name of the directive that knows the search paths. */
  provider: string
  position: Position
}

/** `autopath [ZONE...] RESOLV-CONF|@DIRECTIVE`: searches for names in the place of the client. */
export const autopath: Directive = {
  name: 'autopath',
  setup(c) {
    const options = scanOptions(c)
    const slots = c.counters()
    const source: { paths: SearchPaths | undefined } = { paths: undefined }
    const handler = (next: Handler): Handler => new Autopath(next, options.zones, source, slots)
    const common = [{ handler, changesAnswers: true }, exportCount(c, slots)]
    if (options.file === '') return [common, useProvider(c, options, source)]
    const follow = (path: readonly Uint8Array[]): void => {
      source.paths = path.length === 0 ? undefined : new OnePath(path)
    }
    const broadcast = c.broadcast<readonly Uint8Array[]>(follow)
    const emptyPath = `${options.file} has no search domains, so autopath has no effect`
    const check: CheckHook = ({ warn }) => {
      return faultsOf(() => {
        if (readSearchPath(options).length > 0) return
        warn(new InputError(options.position, `plugin/autopath: ${emptyPath}`))
      })
    }
    const start = (): void => {
      const path = readSearchPath(options)
      if (path.length === 0) c.log.warning(emptyPath, 'autopath-empty')
      follow(path)
      broadcast.publish(path)
    }
    return [common, { check, start }]
  },
}

function scanOptions(c: SetupContext): Options {
  const d = c.dispenser
  let options: Options | undefined
  for (let uses = 0; nextOnce(d, uses); uses++) {
    const args = d.remainingArgs()
    const last = args.at(-1)
    if (last === undefined) throw d.error('no resolv-conf specified')
    const provider = last.startsWith('@') ? last.slice(1) : ''
    if (last === '@') throw d.error('@ needs the name of a directive, such as @kubernetes')
    options = {
      zones: new ZoneSet(scanZoneArgsOrBlock(d, args.slice(0, -1), c.block)),
      file: provider === '' ? resolve(c.block.root, last) : '',
      provider,
      position: d.position(),
    }
    d.eachProperty(() => {
      throw d.unknownProperty(d.value(), [])
    })
  }
  return options!
}

/** Uses the search paths of another directive of the server block. */
function useProvider(
  c: SetupContext,
  { provider, position }: Options,
  source: { paths: SearchPaths | undefined },
): DirectivePart {
  const link = (): void => {
    source.paths = c.block.shared.find(SEARCH_PATHS)?.get(provider)
    const reason = source.paths?.reason ?? ''
    if (reason !== '') c.warn(`@${provider} finds no search paths: ${reason}`, position)
  }
  const check = (): void => {
    if (source.paths !== undefined) return
    const message = `plugin/autopath: no directive ${provider} with search paths in this server block`
    throw new InputError(position, message)
  }
  return { link, check: () => faultsOf(check), start: check }
}

/** Reads the search path; names without a suffix come last. Empty = the file names no domain. Throws InputError. */
function readSearchPath({ file, position }: Options): readonly Uint8Array[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new InputError(
      position,
      `plugin/autopath: failed to parse ${file}: ${error.message}`,
      error,
    )
  }
  const path = scanResolvConf(text).search
  return path.length === 0 ? [] : [...path, Uint8Array.of(0)]
}

function faultsOf(check: () => void): readonly InputError[] {
  try {
    check()
    return []
  } catch (error) {
    if (error instanceof InputError) return [error]
    throw error
  }
}

function exportCount(c: SetupContext, slots: CounterSlots): DirectivePart {
  const name = 'coredns_autopath_success_total'
  const counter = c.metrics.counter(name, 'Counter of requests that did autopath.', ['server'])
  return collectWhileServing(c, () => {
    slots.forEach((counts, { server }) => {
      counter.inc({ server }, counts.take(0))
    })
  })
}
