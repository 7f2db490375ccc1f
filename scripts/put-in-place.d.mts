export function putInPlace(
  fresh: string,
  place: string,
  options?: { withdrawn?: readonly string[]; order?: readonly string[] },
): void
