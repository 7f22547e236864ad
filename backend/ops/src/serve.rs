//! The five methods of each kind of named resource: create, list, get, update and delete.

use std::pin::Pin;

use tonic::{Response, Status};

/// Return type of a method in the form of `async_trait`, which does not expand macros.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;

/// Implements the five methods of a service. `stored` adds fields that only responses to writes
/// have.
#[macro_export]
macro_rules! serve {
    (
        $all:ident of $one:ident;
        $create:ident($Create:ident) -> $Created:ident;
        $list:ident($List:ident) -> $Listed:ident { $many:ident };
        $get:ident($Get:ident) -> $Got:ident $(, detailed by $detail:ident)?;
        $update:ident($Update:ident) -> $Updated:ident;
        $delete:ident($Delete:ident) -> $Deleted:ident, $forced:expr;
        $(stored |$api:ident, $request:ident, $stored:ident| $more:tt)?
    ) => {
        $crate::serve! { @method $create(self, request: $Create) -> $Created {
            $crate::serve!(@store self.$all.create(request), $one, $Created
                $(, self |$api, $request, $stored| $more)?)
        } }

        $crate::serve! { @method $list(self, request: $List) -> $Listed {
            let page = $crate::page::PageRequest {
                size: request.page_size,
                token: request.page_token,
            };
            let filter = $crate::resource::Filter {
                names: request.names,
                tags: request.tags,
                text: request.q,
                others: Vec::new(),
            };
            let page = self.$all.list(&filter, &page).await?;
            Ok(tonic::Response::new(v1::$Listed {
                $many: page.items,
                next_page_token: page.next_page_token,
                total_size: Some(bellwether_backend_base::wire::to_i32(page.total)),
            }))
        } }

        $crate::serve! { @method $get(self, request: $Get) -> $Got {
            let found = self.$all.get(&request.name).await?;
            $(let found = self.$detail.with_details(found).await?;)?
            Ok(tonic::Response::new(v1::$Got { $one: Some(found) }))
        } }

        $crate::serve! { @method $update(self, request: $Update) -> $Updated {
            $crate::serve!(@store self.$all.update(request), $one, $Updated
                $(, self |$api, $request, $stored| $more)?)
        } }

        $crate::serve! { @method $delete(self, request: $Delete) -> $Deleted {
            let forced: fn(&v1::$Delete) -> bool = $forced;
            let force = forced(&request);
            self.$all.delete(&request.name, &request.etag, force).await?;
            Ok($crate::subject::for_resource(request.name, v1::$Deleted {}))
        } }
    };
    (@method $name:ident($self:ident, $request:ident: $Request:ident) -> $Answer:ident $body:tt) => {
        fn $name<'life, 'async_trait>(
            &'life $self,
            request: tonic::Request<v1::$Request>,
        ) -> $crate::serve::Answer<'async_trait, v1::$Answer>
        where
            'life: 'async_trait,
            Self: 'async_trait,
        {
            let $request = request.into_inner();
            Box::pin(async move $body)
        }
    };
    (
        @store $self:ident.$all:ident.$store:ident($request:ident), $one:ident, $Answer:ident
        $(, $this:ident |$api:ident, $asked:ident, $stored:ident| { $($field:ident: $value:expr),* $(,)? })?
    ) => {{
        let mut request = $request;
        let draft = request.$one.take().unwrap_or_default();
        let stored = $self.$all.$store(&draft, request.validate_only).await?;
        $(let ($api, $asked, $stored) = ($this, &request, &stored);)?
        let answer = v1::$Answer {
            $($($field: $value,)*)?
            $one: Some(stored.view),
        };
        let name = answer.$one.as_ref().map(|it| it.name.clone()).unwrap_or_default();
        Ok($crate::subject::mutation_response(request.validate_only, name, answer))
    }};
}
pub use serve;
