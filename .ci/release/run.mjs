// Runs other programs, and writes archives that are the same for the same files.
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'

const OUTPUT_OCTETS_MAX = 64 * 1024 * 1024

/** Ends the release with one line instead of a stack. */
export class ReleaseError extends Error {}

/** Runs a program to its end, in `cwd`; resolves to what it printed. Rejects with its output if it fails. */
export async function run(cwd, program, ...args) {
  try {
    const options = { cwd, maxBuffer: OUTPUT_OCTETS_MAX }
    return (await promisify(execFile)(program, args, options)).stdout
  } catch (error) {
    const output = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim()
    throw new ReleaseError(`${program} ${args.join(' ')}: ${output || error.message}`)
  }
}

/** Arguments of GNU tar for an archive that depends only on the names, the modes and the content of the files. */
function tarOf(folder, epochSeconds, names) {
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  const same = ['--format=gnu', '--sort=name', '--hard-dereference', `--mtime=@${epochSeconds}`]
  return ['-c', ...same, ...owner, '-C', folder, ...names]
}

/**
 * Writes the files `names` of `folder` to the archive `path`, compressed unless `isPlain`. Their times become
 * `epochSeconds`. Resolves to the digests of the archive before and after compression.
 */
export async function writeTar(path, folder, epochSeconds, names = ['.'], isPlain = false) {
  const tar = spawn('tar', tarOf(folder, epochSeconds, names), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(tar, 'close')
  const plain = createHash('sha256')
  tar.stdout.on('data', (part) => plain.update(part))
  const steps = isPlain ? [] : [createGzip()]
  await pipeline(tar.stdout, ...steps, createWriteStream(path))
  const [code] = await closed
  if (code !== 0) throw new ReleaseError(`tar of ${folder} ended with ${code}`)
  return { plain: plain.digest('hex'), packed: await digestOf(path) }
}

export async function digestOf(path) {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
