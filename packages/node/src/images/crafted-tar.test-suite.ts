export interface Entry {
  path: string
  type?: string
  mode?: number
  target?: string
  content?: string | Buffer
  /** What the header says the content's length is, where that is a lie. */
  size?: number
}

/** A tar archive with exactly these entries, the dishonest ones too. */
export function tar(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, type = '0', mode = 0o755, target = '', content = '', size }) => {
    const header = Buffer.alloc(512)
    const body = typeof content === 'string' ? Buffer.from(content) : content
    header.write(path, 0)
    header.write(`${mode.toString(8).padStart(7, '0')}\0`, 100)
    header.write(`${(size ?? body.length).toString(8).padStart(11, '0')}\0`, 124)
    header.write(`${(1_700_000_000).toString(8)}\0`, 136)
    header.write(type, 156)
    header.write(target, 157)
    header.write('ustar\u000000', 257)
    header.write('        ', 148)
    header.write(
      `${header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
    )
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}
