/** Requests to the agent in the Jupyter server. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { SaveResult, UnsavedDocument, View } from './protocol.js';

/** Schema of the event by which the agent pushes views. */
export const EVENT = 'https://gpu-workspaces.jupyter.org/events/session/v1';

export class Agent {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** The current view; null where this server has no agent. */
  async session(): Promise<View | null> {
    const response = await this.request('session');
    return response.ok ? await response.json() : null;
  }

  async tell(
    page: string,
    documents: readonly UnsavedDocument[],
    inputSeconds: number | null,
  ): Promise<void> {
    await this.post('page', { page, documents, inputSeconds });
  }

  /** The page goes away: nothing waits for the answer. */
  close(page: string): void {
    void this.request('page', { page, closed: true }, true).catch(() => undefined);
  }

  async saved(page: string, save: string, result: SaveResult): Promise<void> {
    await this.post('saved', { page, save, ...result });
  }

  async keep(): Promise<View> {
    return (await this.post('keep', {})).json();
  }

  async stop(save: boolean): Promise<View> {
    return (await this.post('stop', { save })).json();
  }

  /** Prepare a run of a file; returns the page where the user goes on. */
  async job(path: string): Promise<string> {
    return (await (await this.post('job', { path })).json()).url;
  }

  private async post(name: string, body: object): Promise<Response> {
    const response = await this.request(name, body);
    if (!response.ok) {
      throw new ServerConnection.ResponseError(response, await problem(response));
    }
    return response;
  }

  private request(name: string, body?: object, keepalive = false): Promise<Response> {
    const init = body ? { method: 'POST', body: JSON.stringify(body), keepalive } : {};
    const url = URLExt.join(this.settings.baseUrl, 'gpu-workspaces', name);
    return ServerConnection.makeRequest(url, init, this.settings);
  }
}

async function problem(response: Response): Promise<string> {
  try {
    const body = await response.json();
    return body.message || response.statusText;
  } catch {
    return response.statusText;
  }
}
