/** What this page knows of the session, and the page's part in it: telling, saving, the buttons. */

import type { Event } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';

import { type Agent, EVENT } from './api.js';
import type { Documents } from './documents.js';
import type { SaveResult, View } from './protocol.js';
import { fingerprint, shouldTell, type Told } from './telling.js';
import type { Seen } from './texts.js';

/** Milliseconds between two looks at the open documents. They cost no request. */
const LOOK = 2_000;
/** The shortest time between them, however fast somebody types. */
const BETWEEN_LOOKS = 1_000;
/** And after the agent could not be told: a server that stops would be asked in vain. */
const AFTER_FAILURE = 15_000;

export class Session {
  private readonly page = UUID.uuid4();
  private readonly _changed = new Signal<this, void>(this);
  private _seen: Seen | null = null;
  private told: Told | null = null;
  private input: number | null = null;
  private savedFor = '';
  private lookAgain = 0;

  constructor(
    private readonly agent: Agent,
    private readonly documents: Documents,
  ) {}

  /** The last view; null before the first one. */
  get seen(): Seen | null {
    return this._seen;
  }

  /** Emitted with each new view. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Begin, if this server has an agent; says whether it has. */
  async start(events: Event.IManager): Promise<boolean> {
    const view = await this.agent.session();
    if (view === null) {
      return false;
    }
    events.stream.connect((_, event) => {
      if (event.schema_id === EVENT) {
        this.see(event.view as unknown as View);
      }
    });
    for (const kind of ['keydown', 'pointerdown']) {
      window.addEventListener(kind, this.noteInput, { capture: true, passive: true });
    }
    window.addEventListener('pagehide', () => {
      this.told = null;
      this.agent.close(this.page);
    });
    window.setInterval(() => this.look(), LOOK);
    this.see(view);
    return true;
  }

  /** Paths of what is not saved in this page. */
  unsaved(): string[] {
    return this.documents.unsaved().map(({ path }) => path);
  }

  save(): Promise<SaveResult> {
    return this.documents.save();
  }

  async keep(): Promise<void> {
    this.see(await this.agent.keep());
  }

  async stop(save: boolean): Promise<void> {
    this.see(await this.agent.stop(save));
  }

  private see(view: View): void {
    this._seen = { view, at: Date.now() };
    this._changed.emit();
    if (view.save && view.save.id !== this.savedFor) {
      this.savedFor = view.save.id;
      void this.saveFor(view.save.id);
    }
    this.look();
  }

  private async saveFor(id: string): Promise<void> {
    const result = await this.documents.save();
    await this.agent.saved(this.page, id, result).catch(() => undefined);
  }

  private readonly noteInput = (): void => {
    this.input = Date.now();
    this.look();
  };

  /** Tell the agent if there is something to tell. A failure is made good by the next look. */
  private look(): void {
    const now = Date.now();
    if (now < this.lookAgain) {
      return;
    }
    this.lookAgain = now + BETWEEN_LOOKS;
    const documents = this.documents.unsaved();
    const current = { documents: fingerprint(documents), input: this.input, now };
    if (!shouldTell(this.told, current)) {
      return;
    }
    this.told = { at: now, documents: current.documents, input: this.input };
    const seconds = this.input === null ? null : (now - this.input) / 1000;
    this.agent.tell(this.page, documents, seconds).catch(() => {
      this.told = null;
      this.lookAgain = now + AFTER_FAILURE;
    });
  }
}
