/** Opens a socket on `host`. '' = every address, or every IPv4 address if the machine has no IPv6. */
export async function openHost<T>(host: string, open: (host: string) => Promise<T>): Promise<T> {
  if (host !== '') return open(host)
  try {
    return await open('::')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error
    return open('0.0.0.0')
  }
}
