"""Words that carry no content, by language: articles, pronouns, prepositions, auxiliaries.

Short lists of closed-class words, written for this project. Negations and quantities stay in the
index on purpose ("not", "without", "all" change what a contract says, and IDF handles the rest).
They stand here as people write them; `STOP_WORDS` has them in normal form, before stemming.
"""

from __future__ import annotations

from core.lexical.words import normal_form

_TEXT: dict[str, str] = {
    "en": """
        a about after again against am an and any are as at be because been before being between
        both but by can could d did do does doing down during each few for from further had has
        have having he her here hers herself him himself his how i if in into is it its itself just
        ll m me might more most must my myself of off on once only or other our ours ourselves out
        over own re s same shall she should so some such t than that the their theirs them
        themselves then there these they this those through to too under until up ve very was we
        were what when where which while who whom whose why will with would you your yours yourself
        yourselves
    """,
    "de": """
        aber als also am an ans auch auf aus bei beim bin bis bist da dabei dadurch daher damit dann
        daran darauf daraus darin das dass davon dazu dein deine deinem deinen deiner deines dem den
        denen denn der deren des dessen dich die dies diese diesem diesen dieser dieses dir doch
        dort du durch ein eine einem einen einer eines er es etwas euch euer eure eurem euren eurer
        für fur gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre
        ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jene jenem jenen
        jener jenes jetzt kann können könnte man mein meine meinem meinen meiner meines mich mir mit
        muss müssen nach noch nun nur ob oder sein seine seinem seinen seiner seines seit selbst
        sich sie sind so sollte sondern sonst sowie über um und uns unser unsere unserem unseren
        unter vom von vor wann war waren warum was weil welche welchem welchen welcher welches wenn
        wer werde werden wessen wem wen wie wieder wir wird wirst wo wollen worden wurde wurden zu
        zum zur zwar zwischen
    """,
    "fr": """
        ai ainsi alors au aussi autre autres aux avaient avait avant avec avez avoir avons c ce ceci
        cela celle celles celui ces cet cette ceux chez ci comme comment d dans de depuis des donc
        dont du elle elles en entre es est et étaient était étant été être eu eux fait font furent
        fut il ils j je l la là laquelle le lequel les lesquelles lesquels leur leurs lors lui m ma
        mais me même mêmes mes moi mon n ne ni nos notre nous on ont ou où par pas peut peuvent plus
        pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa se selon sera seront
        ses si soit son sont sous sur t ta te tes toi ton tous tu un une va vers vos votre vous y à
    """,
    "es": """
        a al algo ante antes aquel aquella aquellas aquellos aquí así aunque cada como cómo con cual
        cuál cuales cuáles cuando cuándo cuyo cuya de del desde donde dónde durante e el él ella
        ellas ellos en entre era eran eres es esa esas ese eso esos esta está están estas este esto
        estos fue fueron ha había habían han hasta hay he la las le les lo los más me mi mí mientras
        mis mucho muy nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para
        pero poco por porque pues que qué quien quién quienes se sea sean según ser será serán si sí
        sido sobre son su sus también tan te tengo ti tiene tienen tu tú tus un una unas uno unos
        usted ustedes y ya yo
    """,
    "it": """
        a abbiamo ad agli ai al alla alle allo anche ancora avere aveva avevano c che chi ci cioè
        col come con cui d da dagli dai dal dalla dalle dallo degli dei del dell della delle dello
        di dove dov e è ed era erano essere fra fu furono gli ha hai hanno ho i il in io l la le lei
        li lo loro lui ma me mentre mi mia mie miei mio ne negli nei nel nell nella nelle nello noi
        nostra nostre nostri nostro o ogni per perché però più poi può qual quale quali quando
        quanto quei quel quella quelle quelli quello questa queste questi questo qui s sarà se sei
        si sia siamo siano siete sono sta stata state stati stato su sua sue sugli sui sul sulla
        sulle sullo suo suoi te ti tra tu tua tue tuo tuoi un una uno v vi voi vostra vostro
    """,
    "pt": """
        a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da daquela das de dela
        delas dele deles depois desde dessa desse desta deste do dos e é ela elas ele eles em entre
        era eram essa essas esse esses esta está estão estas estava este estes eu foi foram há isso
        isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós
        nossa nosso num numa o os ou para pela pelas pelo pelos por porque qual quais quando que
        quê quem são se seja ser será seu seus sido só sob sobre sua suas também te tem têm tendo
        ter teu tinha tu tua um uma umas uns você vocês vos
    """,
    "nl": """
        aan als andere bij daar dan dat de den der deze die dit doch doen door dus een en er ge had
        hadden heb hebben heeft hem hen het hier hij hoe hun ik in is ja je jij jou jouw jullie kan
        kon kunnen me men met mij mijn moet na naar nog nu of om omdat ons onze ook op over reeds s
        t te tegen toch toen tot u uit uw van voor waar waarom want waren was wat we wel welke werd
        werden wie wij wil worden wordt zal ze zelf zich zij zijn zo zou zouden
    """,
    "sv": """
        än är åt att av blev bli blir de dem den denna deras dess dessa det detta dig din dina ditt
        du där då efter ej eller en er era ert ett från för ha had hade han hans har henne hennes
        hon honom hur här i in jag ju kan kunde man med mellan men mig min mina mitt mot mycket
        måste ni nu när någon något några och om oss på samma sedan sig sin sina sitt själv ska
        skulle som så till under upp ut utan vad var vara varför varit varje vars vart vem vi vid
        vilka vilken vilket
    """,
    "da": """
        ad af alle andet at begge blev blive bliver da de dem den denne der deres det dette dig din
        dine disse dit dog du efter eller en end er et for fordi fra få før ham han hans har havde
        have hende hendes her hos hun hvad hvem hver hvilken hvilke hvis hvor hvordan hvorfor
        hvornår i ind jeg jo kan kom kunne man mange med meget mellem men mig min mine mit mod
        må når noget
        nogle nu og også om op os over på sammen selv sig sin sine sit skal skulle som så til ud
        under var ved vi vil ville vor være været
    """,
    "no": """
        alle andre at av ble bli blir blitt både da de deg dei den denne der deres det dette di din
        disse ditt du eg eller en enn er et ett etter for fordi fra før få ha hadde han hans har
        hun hva hvem hver hvilke hvilken hvis hvor hvordan hvorfor i ikkje inn ja jeg kan kom kunne
        man mange med meg mellom men mer min mine mitt mot må når noe noen nå og også om opp oss
        over på samme seg selv si siden sin sine sitt skal skulle slik som så til ut var ved vi vil
        ville vår være vært å
    """,
    "fi": """
        että eli en et ei emme ette eivät hän hänen häntä he heidän heitä ja johon joiden joihin
        joita joka jolla jonka jos jossa josta jota jotka joten juuri jälkeen kanssa kautta kuin
        kuinka kuka kun kuten me meidän mihin mikä miksi millä milloin minkä minä minun missä mistä
        mitä mukaan mutta myös ne niiden niin niitä nyt näiden näitä nämä oli olin olisi olivat olla
        olleet ollut on ovat se sekä sen siellä siihen siinä siitä sillä sinä sitä tai te tämä tämän
        tässä tästä tätä vai vaikka vaan
    """,
    "pl": """
        a aby ale ani aż bardzo bez bo bowiem by być był była było były będą będzie co czy czyli dla
        do gdy gdyż gdzie go i ich im inne iż ja jak jaka jaki jakie jako je jego jej jest jeszcze
        jeśli jeżeli już każdy kiedy kto która które którego której który których którym którzy lub
        ma mają między mi mnie może można my na nad nam nas nich nie niego niej nim niż o od on ona
        one oni oraz po pod podczas ponieważ poza przed przez przy są się sobie swoje ta tak także
        tam te tego tej ten też to tu tych tylko tym u w we więc wszystkie wy z za że żeby
    """,
    "cs": """
        a aby aj ale ani asi až bez bude budou by byl byla byli bylo být co což či dále do ho i já
        jak jako je jeho jej její jejich jen ještě ji jiné jsem jsi jsme jsou jste k kam kde kdo
        kdy když ke která které který kteří ku ma má mají mezi mi mně mu my na nad nam nás naše ne
        nebo než nic o od ode on ona oni ono pak po pod podle pokud pouze pro proč proto před přes
        při s se si svůj ta tak také takže tam te tedy ten tento této tím to tohle toho tom tomto tu
        tuto ty tyto u už v vám vás ve více však vy z za zda ze že
    """,
    "ro": """
        a acea aceasta această aceea acei aceste acest acestea acestei acestor acestui ai aici al
        ale am ar are as asupra au avea că căci când care cărei cărora cărui ce cea cei cel cele
        cine cu cum da dacă dar de deci deși din dintre doar după ea ei el ele era erau este eu
        fără fi fie fiind fost i îi îl în între își l la le li lor lui m mai mult ne nici noi o or
        ori pe pentru peste prin sa să sale sau se și sub sunt te tot tu un una unde unei unor unui
        va voi vor
    """,
    "hu": """
        a ahogy aki akik amely amelyek amelyet ami amikor amit az azok azon azt azért ban be ben
        csak de e egy egyes egyik ekkor el ennek erre és ez ezek ezen ezért ezt fel hanem hogy
        hogyan hol hozzá ide igen így ill is itt ki kell kik le lehet lesz ma maga majd már
        meg mely mert
        mi miért mikor milyen mint mit mivel ne nem ott ő ők őket pedig s saját sem ság sok sőt
        szerint tehát ti új újra után vagy vagyis van vannak volna volt voltak
    """,
    "tr": """
        acaba ama ancak bana bazı belki ben beni benim bir biri birkaç biz bize bizi bizim bu buna
        bunda bundan bunlar bunu bunun burada çok çünkü da daha de defa değil diye eğer en gibi göre
        hangi hem hep her için ile ise kadar kez ki kim kimse mı mi mu mü nasıl ne neden nedir
        nerede niçin niye o olan olarak oldu olduğu olur ona onlar onu onun orada sanki sen seni
        senin siz sizin sonra şey şu tüm var ve veya ya yani
    """,
    "id": """
        ada adalah agar akan anda apa apabila apakah atas atau bagaimana bagi bahwa beberapa berapa
        bisa dalam dan dapat dari dengan di dia hal hanya harus hingga ia ini itu jika juga kami
        kapan karena ke kepada kita lain lebih maka mana masih mengapa menjadi mereka namun oleh
        pada para pun saat saja saya seperti serta setelah siapa sebagai secara sehingga suatu
        sudah tersebut tetapi untuk yaitu yang
    """,
    "ca": """
        a al als amb aquell aquella aquelles aquells aquest aquesta aquestes aquests bé com d de
        del dels des doncs durant e el ell ella elles ells els em en entre era eren es és et ha han
        hem hi ho i ja l la les li llur lo m més meu meva mi molt n no nosaltres o on per perquè
        però pel pels qual quals quan que què qui s sa se ser seu seus seva seves si sobre són sota
        també te tot un una unes uns us va van
    """,
    "ru": """
        а без более бы был была были было быть в вам вас во вот все всё вы где да даже для до его ее
        её ей ему если есть еще ещё же за и из или им их к как какая какие какой каких когда кого
        которая которого которое которой котором которую которые который которых кто куда ли либо
        между меня мне мной может мы на над нам нас наш не него нее ней нему нет ни них но о об
        однако он она они оно от очень по под после потому почему при про с сам свой своих себя со
        так также такая такие такой там тем то того тоже той только том ту ты у уже хотя чего чей
        чем что чтобы чье чьи эта эти этих это этого этой этом этот эту я является
    """,
    "uk": """
        а або але б без би був була були було бути в вам вас ви від він вона вони воно все всі де
        для до дуже є ж за з зі й його її йому їх і із к коли крім кого кому кто куди ли між мене
        мені ми може на над нам нас наш не неї ними них ні об однак от о під після по при про та
        так такий також там те ти тим то того тому той тільки у хто це цього цей ця ці чи чий чим
        чому що щоб я як яка яке який яких якщо які
    """,
    "el": """
        αλλά αν από αυτά αυτές αυτή αυτό αυτοί αυτός αυτού αυτών για γιατί δε δεν εγώ είναι εκεί
        ένα έναν ένας ενός εσύ έχει έχουν ή ήταν η θα και κι κατά με μας μετά μέσα μη μια μία μόνο
        μου να ο οι όπου όπως ότι όταν ποια ποιο ποιος πόσο που πού προς πώς σας σε σου στα στη
        στην στις στο στον στους τα τη την της τι τις το τον του τους των ως
    """,
    "hi": """
        अपना अपनी अपने अब आदि आप इन इस इसका इसकी इसके इसमें इसे ई उन उनका उनकी उनके उस उसका उसकी
        उसके उसे एक एवं ऐसे और कई कर करता करते करना करने कहाँ कहा का कि किस किसी की कुछ के को कोई
        कौन कौनसा कौनसी क्या क्यों गई गए गया घर जब जहाँ जा जाता जाती जाते जाना जिन जिस जिसका जिसकी
        जिसके जिसने जिसमें जिसे जो तक तथा तब तरह तो था थी थे दिया द्वारा ने पर फिर बहुत बाद भी मगर
        में यह यहाँ या ये रहा रही रहे लिए वह वहाँ वाला वाली वाले वे सकता सकते सभी साथ से हम ही हुआ
        हुई हुए है हैं हो होता होती होते होना होने
    """,
    "ar": """
        إلى إن أن أو أي إذا التي الذي الذين ألا أما أنه إنها أنها أيضا بأن بعد بين به بها تلك ثم
        حتى حيث خلال ذلك عليه عليها عن عند عندما على في فيه فيها قد كان كانت كل كما كيف لا لذلك لم
        لن له لها لو ليس ما ماذا متى مع من منذ منه منها هذا هذه هل هم هناك هو هي و وأن وفي وقد وكان
        ولا ومن وهو وهي يكون
    """,
    "fa": """
        آن آنها آیا اگر از است اما او این اینکه با باید بر برای بود بودن بوده به بی پس پیش تا تحت
        ترین تر چرا چگونه چند چه چون حتی خود دارد دارند داشت داشته در دیگر را سپس شد شده شود ضمن که
        کجا کدام کرد کرده کند کنند کی کنید ما مورد می نیز نه ها هر هم همان همه همین و ولی وی یا یک
    """,
}

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(normal_form(text).split()) for language, text in _TEXT.items()
}
