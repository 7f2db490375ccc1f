import type { JSX } from 'preact'

const shapes = {
  tasks: 'M3 4h10M3 8h10M3 12h6',
  board: 'M3 3h3v10H3zM8 3h3v6H8zM13 3h0',
  box: 'M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8.1 13.5 5M8 8.1v6.1',
  chart: 'M3 13V8M8 13V3M13 13V6',
  gear: 'M8 5.6a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4',
  folder: 'M2 4.5h4l1.5 1.5H14v7H2z',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  check: 'M3.5 8.5 6.5 11.5 12.5 4.5',
  alert: 'M8 4v5M8 11.6v.4',
  chevron: 'M6 4l4 4-4 4',
  branch: 'M5 3v10M5 10c0-3 6-2 6-5M5 3.2a1.2 1.2 0 1 1 0-.1M5 13.2a1.2 1.2 0 1 1 0-.1M11 4.2a1.2 1.2 0 1 1 0-.1',
  terminal: 'M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10H11',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
  tool: 'M10 2.5a3.2 3.2 0 0 0-3 4.3L2.6 11.2l2.2 2.2L9.200 9a3.2 3.2 0 0 0 4.2-4l-2 2-1.900-.4-.4-1.900z',
  copy: 'M5.500 5.500V3h7.500v7.500h-2.500M3 5.500h7.500V13H3z',
  menu: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  arrow: 'M8 3v10M4 9l4 4 4-4',
  link: 'M6.500 9.500l3-3M7 4.500l1-1a3 3 0 0 1 4.500 4.500l-1 1M9 11.500l-1 1A3 3 0 0 1 3.500 8l1-1',
  stop: 'M4.500 4.500h7v7h-7z',
  retry: 'M12.700 9.500A5 5 0 1 1 12 5l1.500 1.500M13.500 3v3.500H10',
  trash: 'M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500',
  keyboard: 'M2 4.500h12v7H2zM4.500 7h.01M7 7h.01M9.500 7h.01M11.800 7h.01M5 9.300h6',
  send: 'M13.500 2.500 7 9M13.500 2.500l-4 11L7 9 2.500 6.500z',
  comment: 'M2.500 3h11v8H7l-3 2.500V11H2.500z',
} as const
export type IconName = keyof typeof shapes

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={shapes[name]} />
    </svg>
  )
}

/** The mark of the product: posts and rails. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d="M4.500 2.500v15M10 2.500v15M15.500 2.500v15M1.800 7h16.400M1.800 13h16.400" />
    </svg>
  )
}
