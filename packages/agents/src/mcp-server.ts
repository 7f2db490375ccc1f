/** A server of the Model Context Protocol: a program inside the sandbox, or an address outside that egress is granted to. */
export type McpServer =
  | {
      readonly name: string
      readonly command: string
      readonly args?: readonly string[] | undefined
      readonly env?: Readonly<Record<string, string>> | undefined
    }
  | { readonly name: string; readonly url: string; readonly headers?: Readonly<Record<string, string>> | undefined }

export const isRemote = (server: McpServer): server is Extract<McpServer, { url: string }> => 'url' in server
