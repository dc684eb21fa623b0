/** When a page tells the agent what it has unsaved. Seldom: each request passes the hub's proxy. */

import type { UnsavedDocument } from './protocol.js';

/** What a page told, and when. */
export interface Told {
  readonly at: number;
  readonly documents: string;
  readonly input: number | null;
}

/** Milliseconds after which the agent is told again that the page is there. */
export const STILL_HERE = 240_000;
/** Milliseconds after the last input that was told: the next one is news. */
export const INPUT_GAP = 60_000;

/** One line for a set of documents, whatever their order. */
export function fingerprint(documents: readonly UnsavedDocument[]): string {
  return documents
    .map(document => document.path)
    .sort()
    .join('\n');
}

/** Whether there is something to tell. Times in milliseconds; `input` is when the user last did something. */
export function shouldTell(
  told: Told | null,
  current: { documents: string; input: number | null; now: number },
): boolean {
  if (told === null || told.documents !== current.documents) {
    return true;
  }
  const back = current.input !== null && (told.input === null || current.input - told.input >= INPUT_GAP);
  return back || current.now - told.at >= STILL_HERE;
}
