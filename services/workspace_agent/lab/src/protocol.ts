/** What the agent in the Jupyter server tells: `view.py` there, and the messages of `hub_ext/protocol.py`. */

export type State = 'in-use' | 'idle' | 'unknown' | 'kept' | 'warned' | 'saving' | 'stopping' | 'unlimited';

export type Act = 'keep' | 'save-stop' | 'stop' | 'handoff';

export interface Button {
  readonly act: Act;
  readonly label: string;
  readonly enabled: boolean;
  /** Why it is not enabled, or what it does. */
  readonly text: string;
  readonly url: string;
}

export interface Evidence {
  readonly source: string;
  readonly value: 'busy' | 'idle' | 'unknown';
  readonly text: string;
  readonly ageSeconds: number | null;
}

export interface SaveRequest {
  readonly id: string;
  readonly seconds: number;
}

export interface Answer {
  readonly state: State;
  readonly text: string;
  readonly observeOnly: boolean;
  readonly limit: 'idle' | 'session' | null;
  readonly secondsLeft: number | null;
  readonly stage: number;
  /** What cannot be saved, as sentences. */
  readonly lost: readonly string[];
  readonly buttons: readonly Button[];
  readonly evidence: readonly Evidence[];
}

export interface Gpu {
  readonly uuid: string;
  /** By this workspace's own processes, 0 to 1; null where it cannot be told. */
  readonly use: number | null;
  readonly memoryBytes: number | null;
}

export interface View {
  readonly answer: Answer | null;
  readonly answerAgeSeconds: number | null;
  /** Why the agent's last report was not answered. */
  readonly problem: string | null;
  readonly gpus: readonly Gpu[];
  readonly save: SaveRequest | null;
  readonly handoff: boolean;
}

export interface UnsavedDocument {
  readonly path: string;
  readonly kind: string;
}

export interface SaveResult {
  readonly saved: readonly string[];
  readonly failed: readonly { readonly path: string; readonly why: string }[];
}
